#include "sparsight/cli/main.h"

int main(int argc, char** argv) { return sparsight::main(argc, argv); }
