#include "sparsight/core/assets.inc"

ASSET(vega, .incbin "third_party/vega/vega.min.js")
ASSET(vega_lite, .incbin "third_party/vega/vega-lite.min.js")
ASSET(vega_embed, .incbin "third_party/vega/vega-embed.min.js")
ASSET(page_style, .incbin "sparsight/report/page/style.css")
ASSET(page_watch, .incbin "sparsight/report/page/watch.js")
ASSET(page_photos, .incbin "sparsight/report/page/photos.js")
ASSET(page_charts, .incbin "sparsight/report/page/charts.js")
