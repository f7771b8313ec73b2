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


ASSET(serve_page, "sparsight/serve/page/page.html")
ASSET(serve_style, "sparsight/serve/page/page.css")
ASSET(serve_script, "sparsight/serve/page/page.js")

#if defined(__linux__) && defined(__ELF__)
  .section .note.GNU-stack, "", %progbits
#endif
