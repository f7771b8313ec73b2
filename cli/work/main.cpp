#include <unistd.h>

#include <cstdio>

#include "sparsight/cli/main.h"

int main(int argc, char** argv) {
  const int code = sparsight::main(argc, argv);
  std::fflush(nullptr);
  _exit(code);  // instead of a return, after which libtorch takes its tables of operators apart for 0.1 s
}
