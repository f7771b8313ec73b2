// Writes a vision transformer of tests/support/small_vit.h as a frozen model, and the same one in fp32 as an ONNX file:
// write_small_vit FILE [SEED] [--depth 12 --width 192 ...] [--onnx FILE]
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>

#include "sparsight/core/error.h"
#include "sparsight/engine/onnx/onnx_export.h"
#include "tests/support/frozen.h"
#include "tests/support/small_vit.h"

namespace {

using namespace sparsight;

struct Request {
  std::string file, onnx;
  bool masked = false;
  test::VitShape shape;
};

void declare(CLI::App& app, Request& request) {
  test::VitShape& shape = request.shape;
  app.add_option("file", request.file, "Frozen model to write")->required();
  app.add_option("seed", shape.seed, "Seed of the weights")->capture_default_str();
  const std::pair<const char*, int64_t*> numbers[] = {
      {"--side", &shape.side},     {"--patch", &shape.patch},     {"--classes", &shape.classes},
      {"--depth", &shape.depth},   {"--width", &shape.width},     {"--heads", &shape.heads},
      {"--routed", &shape.routed}, {"--experts", &shape.experts}, {"--k", &shape.k}};
  for (const auto& [name, value] : numbers)
    app.add_option(name, *value)->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_flag("--per-token", shape.per_token, "Each token gets experts of its own, not each image");
  app.add_flag("--shared-router", shape.shared_router, "One router decides for all layers");
  app.add_option("--type", shape.type, "Type of the matrices")
      ->transform(CLI::CheckedTransformer(std::map<std::string, WeightType>{
          {"fp32", WeightType::fp32}, {"bf16", WeightType::bf16}, {"int8", WeightType::int8}}));
  app.add_option("--onnx", request.onnx, "ONNX file to write too");
  app.add_flag("--masked", request.masked, "Experts of the ONNX file compute all rows, so that all shapes are known");
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) fail("cannot write ", path);
}

void write_models(const Request& request) {
  const engine::Program program = test::make_vit(request.shape);
  write_file(request.file, test::frozen_bytes(program));
  if (request.onnx.empty()) return;
  std::string bytes;
  engine::write_onnx(
      program, [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); },
      request.masked ? engine::OnnxExperts::masked : engine::OnnxExperts::gathered);
  write_file(request.onnx, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a vision transformer of random weights.");
  Request request;
  declare(app, request);
  CLI11_PARSE(app, argc, argv);
  try {
    write_models(request);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
