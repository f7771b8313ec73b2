#include "cli/cmd_serve.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

void add_limits(CLI::App& verb, ServeArguments& arguments) {
  const auto number = [&](const char* name, int64_t& value, int64_t low, int64_t high, const char* help) {
    verb.add_option(name, value, help)->check(CLI::Range(low, high))->capture_default_str();
  };
  number("--max-batch", arguments.max_batch, 1, 4096, "Number of images to compute at once");
  verb.add_option("--max-delay-ms", arguments.max_delay_ms,
                  "How long an image waits for others before its batch begins, in milliseconds")
      ->check(CLI::Range(0.0, 10'000.0))
      ->capture_default_str();
  number("--max-queue", arguments.max_queue, 1, 1 << 20, "Number of images that may wait; more are answered with 503");
  number("--max-connections", arguments.max_connections, 1, 10'000,
         "Number of open connections; more are refused (503)");
  number("--max-megabytes", arguments.max_megabytes, 1, 1024, "Size of a request's body in MiB, unpacked");
  number("--max-megapixels", arguments.max_megapixels, 1, 64, "Size of a picture in millions of pixels");
  number("--timeout", arguments.timeout, 1, 3600, "Seconds for a request to arrive, and for its answer");
}

}  // namespace

void add_serve(CLI::App& app) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* verb = add_verb(app, "serve", "Answer requests for a model over HTTP, with a page to try it",
                            "sparsight serve runs/demo\n"
                            "sparsight serve demo.sparsight --port 9000 --threads 4\n"
                            "sparsight serve runs/demo --max-batch 64 --max-delay-ms 5\n"
                            "SPARSIGHT_TOKEN=secret sparsight serve runs/demo --host 0.0.0.0\n"
                            "curl --data-binary @cat.png 'http://localhost:8000/predict?top=3'");
  verb->add_option("run", arguments->run, "Run folder, checkpoint, exported model, or weights in one file or several")
      ->required()
      ->type_name("RUN");
  verb->add_option("--host", arguments->host, "Address to listen at; 0.0.0.0: all of this machine")
      ->capture_default_str();
  verb->add_option("--port", arguments->port, "Port to listen at; 0: any free one")
      ->check(CLI::Range(int64_t{0}, int64_t{65535}))
      ->capture_default_str();
  verb->add_option("--name", arguments->name, "Name of the model in addresses (default: that of RUN)");
  verb->add_option("--threads", arguments->threads, "Threads of the model (default: one for each core)")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  add_limits(*verb, *arguments);
  verb->add_option(
      "--token", arguments->token,
      "Token that requests must send (Authorization: Bearer TOKEN); in the environment, as SPARSIGHT_TOKEN, "
      "no list of processes shows it");
  add_checkpoint_option(*verb, arguments->checkpoint);
  add_weights_option(*verb, arguments->weights);
  add_overrides_option(*verb, arguments->overrides);
  add_bare_weights_options(*verb, arguments->bare);
  add_pack_cache_option(*verb, arguments->pack_cache);
  verb->callback([arguments] { run_serve(*arguments); });
}

}  // namespace sparsight::cli
