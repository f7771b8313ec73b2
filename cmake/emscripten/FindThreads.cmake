# WebAssembly without threads: starting one fails, and the library computes on the thread of the caller.
if(NOT TARGET Threads::Threads)
  add_library(Threads::Threads INTERFACE IMPORTED)
endif()
set(Threads_FOUND ON)
