// sparsight-run: classifies images with a frozen model. It prints as `sparsight predict` does.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/output.h"
#include "runtime/run/arguments.h"
#include "runtime/run/prediction.h"
#include "sparsight/core/bytes.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"

namespace sparsight::run {
namespace {

class Predictor {
 public:
  explicit Predictor(const Arguments& arguments)
      : arguments_(arguments),
        model_(arguments.model, kept_experts(arguments), arguments.pack_cache),
        session_(model_, threads(arguments)) {
    if (model_.info().pack_cache < 0)
      log_warning("packed weights cannot be kept beside ", printable(arguments.model),
                  "; allow writing to its folder, free some space, or leave out --pack-cache");
  }

  // Raises Error or infer::Error where the image cannot be classified.
  void answer(const std::string& path) {
    const Bytes file = read_bytes(path, kMaxImageFileBytes);
    const infer::Prediction prediction = session_.classify_encoded(std::as_bytes(std::span(file)));
    const std::vector<infer::Routing> routings = session_.routings();
    PredictionSummary answer = summary(model_, printable(path), prediction, routings, arguments_.top);
    if (arguments_.json) {
      Json json = to_json(answer);
      if (arguments_.routing) json["routing"] = routing_json(routings);
      cli::output() << json_text(json) << std::endl;
    } else {
      if (!arguments_.routing) answer.layers.clear();
      cli::output() << to_text(answer) << std::endl;
    }
  }

 private:
  // (What is kept packed is what is read at once.)
  static int64_t kept_experts(const Arguments& arguments) {
    const bool all = arguments.pack_cache && arguments.kept_experts == Arguments().kept_experts;
    return all ? SPARSIGHT_INFER_ALL_EXPERTS : arguments.kept_experts;
  }
  static int64_t threads(const Arguments& arguments) {
    return arguments.threads > 0 ? arguments.threads
                                 : std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 1024);
  }

  const Arguments& arguments_;
  infer::Model model_;
  infer::Session session_;
};

// Every image gets a prediction or an error line; an unreadable image does not stop the others.
void run(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse_arguments(argc, argv);
  if (!arguments) return;
  Predictor predictor(*arguments);
  size_t failed = 0;
  for (const std::string& path : arguments->images) {
    try {
      predictor.answer(path);
    } catch (const infer::Error& error) {
      log_line("error", cat(printable(path), ": ", error.what()));
      ++failed;
    } catch (const Error& error) {
      log_line("error", printable(error.what()));
      ++failed;
    }
  }
  if (failed > 0) fail(failed, " of ", arguments->images.size(), " images could not be processed");
}

int exit_code(int argc, char** argv) {
  try {
    run(argc, argv);
    if (!cli::output().flush() || std::ferror(stdout))
      fail("cannot write to standard output; is it closed, or is the disk full?");
    return 0;
  } catch (const Error& error) {
    log_line("error", printable(error.what()));
    return error.exit_code();
  } catch (const std::exception& error) {
    log_line("error", printable(error.what()));
    return 1;
  }
}

}  // namespace
}  // namespace sparsight::run

int main(int argc, char** argv) { return sparsight::run::exit_code(argc, argv); }
