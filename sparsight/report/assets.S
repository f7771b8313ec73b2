// Files built into the program, each between <name>_begin and <name>_end. The include path is the repository's root.
#ifdef __APPLE__
#define SYMBOL(name) _##name
  .const
#else
#define SYMBOL(name) name
  .section .rodata
#endif

#define ASSET(name, path) \
  .globl SYMBOL(sparsight_asset_##name##_begin) ; \
  .globl SYMBOL(sparsight_asset_##name##_end) ; \
  SYMBOL(sparsight_asset_##name##_begin): .incbin path ; \
  SYMBOL(sparsight_asset_##name##_end): .byte 0

ASSET(vega, "third_party/vega/vega.min.js")
ASSET(vega_lite, "third_party/vega/vega-lite.min.js")
ASSET(vega_embed, "third_party/vega/vega-embed.min.js")
ASSET(page_style, "sparsight/report/page/style.css")
ASSET(page_watch, "sparsight/report/page/watch.js")
ASSET(page_charts, "sparsight/report/page/charts.js")

#if defined(__linux__) && defined(__ELF__)
  .section .note.GNU-stack, "", %progbits
#endif
