#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>

#include "cli/cmd_serve.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/infer/frozen_model.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/serve/serve.h"

namespace sparsight::cli {
namespace {

// A frozen file needs no more than itself; one that `sparsight export` wrote says whether it mixes images.
serve::ServedModel read_frozen(const std::string& path, bool pack_cache) {
  const std::shared_ptr<const engine::ByteSource> file = engine::open_file(path);
  const engine::FrozenHeader header = engine::read_header(*file);
  const auto mixes = header.provenance.find("mixes_images");
  return {.name = {},
          .program = std::make_shared<const engine::Program>(read_frozen_program(path, file, header, pack_cache)),
          .mixes_images = mixes != header.provenance.end() && mixes->is_boolean() && mixes->get<bool>()};
}

serve::ServedModel read_run(const ServeArguments& arguments) {
  LoadedModel loaded = load_model_or_weights({arguments.run, arguments.checkpoint, arguments.overrides, arguments.bare,
                                              /*needs_data=*/false, arguments.pack_cache});
  compile(loaded, std::numeric_limits<int64_t>::max(), arguments.weights);
  if (!loaded.program) {
    std::string reason = "it has no program";
    try {
      make_program(loaded, {});
    } catch (const Error& error) {
      reason = error.what();
    }
    fail(printable(arguments.run), " cannot be served: ", reason);
  }
  return {.name = {}, .program = {loaded.program, &loaded.program->program()}, .mixes_images = loaded.mixes_images};
}

bool has_settings(const ServeArguments& arguments) {
  const BareOptions& bare = arguments.bare;
  return !arguments.checkpoint.empty() || !arguments.weights.empty() || !arguments.overrides.empty() ||
         !bare.config.empty() || !bare.normalize.empty() || !bare.labels.empty() || bare.classes > 0;
}

serve::ServedModel read_model(const ServeArguments& arguments) {
  const bool plain = is_frozen_model(arguments.run) && !has_settings(arguments);
  serve::ServedModel model = plain ? read_frozen(arguments.run, arguments.pack_cache) : read_run(arguments);
  const std::filesystem::path path = std::filesystem::absolute(arguments.run).lexically_normal();
  const std::string stem = (path.has_filename() ? path : path.parent_path()).stem().string();
  model.name = serve::model_name(arguments.name.empty() ? stem : arguments.name);
  return model;
}

// An image must not be answered otherwise because of the others of its batch: products whose bits depend on the number
// of rows are left out, unless the environment asks for them. A processor without fused multiply-add has no such
// arithmetic.
void use_consistent_arithmetic() {
  if (std::getenv("SPARSIGHT_ARITHMETIC")) return;
  try {
    set_arithmetic("consistent");
  } catch (const UsageError&) {
    log_info("this processor has no consistent arithmetic: the last bits of an answer depend on the other requests");
  }
}

std::string wanted_token(const std::string& given) {
  const char* in_environment = std::getenv("SPARSIGHT_TOKEN");
  return given.empty() && in_environment ? in_environment : given;
}

}  // namespace

void run_serve(const ServeArguments& arguments) {
  begin_interruptible_work();
  check_model_exists(arguments.run);
  use_consistent_arithmetic();  // before matrices are packed for it
  const std::chrono::seconds timeout(arguments.timeout);
  const serve::ServiceOptions service{
      .batches = {.max_batch = arguments.max_batch,
                  .max_delay = std::chrono::microseconds(static_cast<int64_t>(arguments.max_delay_ms * 1000)),
                  .max_queue = arguments.max_queue},
      .threads = arguments.threads > 0 ? arguments.threads : std::max<int64_t>(1, std::thread::hardware_concurrency()),
      .max_pixels = arguments.max_megapixels * 1'000'000,
      .token = wanted_token(arguments.token),
      .timeout = timeout};
  serve::serve(read_model(arguments), service,
               {.host = arguments.host,
                .port = arguments.port,
                .max_bytes = arguments.max_megabytes << 20,
                .max_connections = arguments.max_connections,
                .timeout = timeout});
}

}  // namespace sparsight::cli
