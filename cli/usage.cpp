#include "cli/usage.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>

#include "cli/output.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight::cli {
namespace {

// torch appends a stack trace to its errors.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// torch's allocator does not throw std::bad_alloc.
bool lacks_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) ||
         std::string(error.what()).find("you tried to allocate") != std::string::npos;
}

}  // namespace

CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& summary, const std::string& examples) {
  CLI::App* verb = app.add_subcommand(name, summary);
  std::istringstream lines(examples);
  std::string footer = "Example:", line;
  while (std::getline(lines, line)) footer += "\n  " + line;
  verb->footer(footer);
  return verb;
}

void add_weights_option(CLI::App& verb, std::string& type) {
  verb.add_option("--weights", type,
                  "Type of packed weights: fp32, bf16 or int8 (half or a quarter of the memory, outputs off by about "
                  "0.3 or 2 %; int8 is the fastest); experts are packed with this option only, worthwhile from a few "
                  "hundred images on")
      ->check(CLI::IsMember(weight_type_names()));
}

void add_global_flags(CLI::App& app) {
  const auto settings = std::make_shared<LogSettings>(default_log_settings());
  app.add_flag("--quiet", settings->quiet, "Print only results, warnings and errors");
  app.add_flag("--log-json", settings->json, "Write progress and messages to stderr as JSON, one object per line");
  app.parse_complete_callback([settings] { set_log(*settings); });
  app.fallthrough();  // inherited by the verbs, so that the flags may also follow them
}

int parsed(CLI::App& app, const std::function<void()>& parse) {
  try {
    parse();
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version, output(), output());
  } catch (const CLI::ParseError& error) {
    fail_usage(describe_usage_error(app, error));
  }
  return 0;
}

int to_exit_code(const std::function<int()>& run) {
  try {
    const int code = run();
    if (!output().flush() || std::ferror(stdout))
      fail("cannot write to standard output; is it closed, or is the disk full?");
    return code;
  } catch (const Error& error) {
    log_line("error", printable(error.what()));
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    log_line("error", cat("cannot use ", printable(error.path1().string()), ": ", error.code().message()));
    return 1;
  } catch (const std::exception& error) {
    const std::string what = printable(first_line(error.what()));
    if (lacks_memory(error))
      log_line("error", "not enough memory (" + what + "); use a smaller model or smaller inputs");
    else
      log_line("internal error", what);
    return 1;
  }
}

}  // namespace sparsight::cli
