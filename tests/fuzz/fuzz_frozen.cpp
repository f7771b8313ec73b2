#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

// Also runs what was read, if it is small. (Checksums are not compared: FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION.)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] {
    const std::shared_ptr<const engine::ByteSource> file = engine::bytes_in_memory({data, size}, "input");
    const engine::Program program = engine::read_program(file, engine::read_header(*file));
    if (program.pixels().numbers() > 4096 || program.bytes_per_image() > 1 << 20 || program.steps().size() > 32) return;
    const std::vector<float> pixels(static_cast<size_t>(program.pixels().numbers()), 0.5F);
    engine::Session session;
    cpu::OwnThreads threads(1);
    program.run(session, threads, {.pixels = pixels.data(), .images = 1});
  });
}
