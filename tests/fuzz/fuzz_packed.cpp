#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/core/private_folder.h"
#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/engine/file/pack_cache.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "tests/engine/program_forms.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/frozen.h"

using namespace sparsight;

namespace {

constexpr size_t kIdentity = 80;  // bytes that say of what the file is: what differs there is not read on

// A model with the right file beside it.
struct PackedModel {
  PrivateFolder folder{"sparsight-fuzz"};
  std::string path = folder.path() + "/model", cache = path + ".baseline.packed", right;

  PackedModel() {
    for (const engine_test::ProgramForm& form : engine_test::program_forms())
      if (form.name.find("mlps_relu") != std::string::npos)
        std::ofstream(path, std::ios::binary) << test::frozen_bytes(form.make(WeightType::int8));
    open();
    std::ifstream file(cache, std::ios::binary);
    right.assign(std::istreambuf_iterator<char>(file), {});
    if (right.size() <= kIdentity) std::abort();
  }
  engine::Program open() const {
    const std::shared_ptr<const engine::ByteSource> file = engine::open_file(path);
    return engine::read_program(file, engine::read_header(*file), {}, path);
  }
};

}  // namespace

// The input is what differs from the right file: how many of its bytes are cut, and then bits that are flipped behind
// the identity. (Checksums are not compared: FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION.)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const PackedModel model;
  return try_reader([&] {
    std::string bytes = model.right;
    for (size_t i = 2; i < size && kIdentity + i - 2 < bytes.size(); ++i)
      bytes[kIdentity + i - 2] = static_cast<char>(bytes[kIdentity + i - 2] ^ data[i]);
    if (size >= 2) bytes.resize(bytes.size() - std::min<size_t>(bytes.size(), data[0] + size_t{256} * data[1]));
    std::filesystem::remove(model.cache);
    std::ofstream(model.cache, std::ios::binary) << bytes;
    const engine::Program program = model.open();
    const std::vector<float> pixels(static_cast<size_t>(engine_test::kFormPixels), 0.5F);
    engine::Session session;
    cpu::OwnThreads threads(1);
    program.run(session, threads, {.pixels = pixels.data(), .images = 1});
  });
}
