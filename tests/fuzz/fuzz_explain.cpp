// The input is explain.json of a run folder that has one picture in it and a secret beside it.
#include <filesystem>
#include <fstream>

#include "sparsight/report/run/read_explanation.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

namespace {

// The run folder; always the same one.
const std::string& run_folder() {
  static const std::string run = [] {
    const std::string parent = as_file(nullptr, 0) + ".runs";
    std::filesystem::create_directories(parent + "/run/explain");
    std::ofstream(parent + "/secret") << "secret";
    std::ofstream(parent + "/run/explain/000_image.png") << "picture";
    return parent + "/run";
  }();
  return run;
}

void check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::ofstream(run_folder() + "/explain/explain.json", std::ios::binary) << as_text(data, size);
  RunSummary run;
  ExplainSummary explain;
  try_reader([&] { explain = read_explanation(run_folder(), "explain", run); });
  for (const std::string& warning : run.warnings) check(printable(warning) == warning, "not one printable line");
  for (const ExplainedImage& image : explain.examples)
    for (const std::string& bytes : {image.picture_png, image.experts_png})
      check(bytes != "secret", "read a file outside the run folder");
  return 0;
}
