// Writes the model of tests/support/small_vit.h: write_small_vit FILE [SEED]
#include <cstdio>
#include <cstdlib>

#include "tests/support/frozen.h"
#include "tests/support/small_vit.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string bytes =
      sparsight::test::frozen_bytes(sparsight::test::small_vit(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1));
  std::FILE* const file = std::fopen(argv[1], "wb");
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return file && std::fclose(file) == 0 && written ? 0 : 1;
}
