#include "cli/usage.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <sstream>

#include "cli/catalogue.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight::cli {
namespace {

// The innermost verb that the command line reached.
const CLI::App& reached_verb(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : reached_verb(*parsed.back());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

// The flag closest to `word` ("--quite=1"), "" if none is close. Compared without dashes, which all flags share.
std::string nearest_flag(const std::string& word, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* level = &app; level; level = level->get_parent())
    for (const CLI::Option* option : level->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  const size_t begin = std::min(word.find_first_not_of('-'), word.size());
  const std::string bare = word.substr(begin, word.find('=') - begin), nearest = nearest_name(bare, names);
  return bare.size() < 2 || nearest.empty() ? "" : "--" + nearest;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

// "--set train.epochs=2" for --epochs 2 and --epochs=2, "" if no section has such a setting.
std::string to_setting(const std::string& word, const std::string& next, const CLI::App& verb) {
  if (!verb.get_option_no_throw("--set")) return "";
  const size_t begin = std::min(word.find_first_not_of('-'), word.size()), equals = word.find('=', begin);
  std::string key = word.substr(begin, equals == std::string::npos ? equals : equals - begin);
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string given = equals == std::string::npos ? next : word.substr(equals + 1);
  const std::string value = given.empty() || given.front() == '-' ? "VALUE" : printable(given);
  std::vector<std::string> settings;
  for (const std::string& setting : setting_keys())
    if (setting.substr(setting.find('.') + 1) == key) settings.push_back(cat("--set ", setting, "=", value));
  return join(settings, " or ");
}

// Describes what is wrong with the command line that made `app` throw `error`.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = reached_verb(app);
  const std::vector<std::string> verbs = verb_names(verb), extras = app.remaining(true);
  const std::string help = "; see " + full_name(verb) + " --help";
  if (extras.empty() || extras.front() == "--") return cat(printable(error.what()), help);
  const std::string& word = extras.front();
  if (word.size() > 1 && word.front() == '-') {
    const std::string setting = to_setting(word, extras.size() > 1 ? extras[1] : "", verb);
    return cat("unknown flag ", printable(word), did_you_mean(setting.empty() ? nearest_flag(word, verb) : setting),
               help);
  }
  if (!verbs.empty())
    return cat("unknown verb \"", printable(word), "\" after ", full_name(verb), suggestion(word, verbs));
  return cat("unexpected argument \"", printable(word), "\"", help);
}

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
