# Toolchain of WebAssembly with vectors of 128 bits: Debian's emscripten (3.1.6: clang 14, libc++ 13). Programs are run
# by Node. Exceptions are those of WebAssembly itself, and there are no threads. Fused multiply-add is not in the standard
# instructions, and this emscripten does not have the "relaxed" ones that do.
execute_process(COMMAND em-config EMSCRIPTEN_ROOT OUTPUT_VARIABLE _emscripten OUTPUT_STRIP_TRAILING_WHITESPACE)
set(EMSCRIPTEN_SYSTEM_PROCESSOR wasm32)
include("${_emscripten}/cmake/Modules/Platform/Emscripten.cmake")
set(_wasm "-msimd128 -fwasm-exceptions")
set(CMAKE_C_FLAGS_INIT "${_wasm}")
# What libc++ 13 lacks of C++20.
set(_include "${CMAKE_CURRENT_LIST_DIR}/emscripten/include")
set(CMAKE_CXX_FLAGS_INIT "${_wasm} -isystem ${_include} -include ${_include}/missing_from_libcxx.h")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sWASM_BIGINT=1")
# Libraries of the machine that builds are not looked for, but those of headers alone, see emscripten/.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/emscripten")
# Where Debian has the packages that emscripten's scripts need, for a Node that is not Debian's.
set(CMAKE_C_LINKER_LAUNCHER "${CMAKE_COMMAND};-E;env;NODE_PATH=/usr/share/nodejs")
set(CMAKE_CXX_LINKER_LAUNCHER "${CMAKE_C_LINKER_LAUNCHER}")
