// A program that only predicts, linked without the folders above infer/ (tests/infer/alone.cmake): the test is that it
// links. `alone RUN` prints the dataset of the run.
#include <cstdio>

#include "sparsight/core/error.h"
#include "sparsight/infer/evaluate_run.h"
#include "sparsight/infer/explain_run.h"
#include "sparsight/infer/image_list.h"
#include "sparsight/infer/predict.h"

int main(int argc, char** argv) {
  using namespace sparsight;
  if (argc == 2) {
    try {
      const LoadedModel loaded = load_model(argv[1]);
      EvaluateRunOptions options;
      options.path = argv[1];
      ExplainRequest request;
      request.run = argv[1];
      std::printf("%s: %s\n", loaded.data.name.c_str(), evaluate_run(options).dump().c_str());
      std::printf("%zu layers explained\n", explain_run(request).layers.size());
      const at::Tensor blank = at::zeros({loaded.data.channels, 32, 32}, at::kByte);
      std::printf("%s\n", to_text(predict(loaded, blank, "blank", 1)).c_str());
    } catch (const Error& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      return error.exit_code();
    }
  }
  return 0;
}
