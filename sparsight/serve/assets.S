#include "sparsight/core/assets.inc"

ASSET(serve_page, .incbin "sparsight/serve/page/page.html")
ASSET(serve_style, .incbin "sparsight/serve/page/page.css")
ASSET(serve_script, .incbin "sparsight/serve/page/patches.js" ; .incbin "sparsight/serve/page/page.js")
