#include "cli/usage_error.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/catalogue.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight::cli {
namespace {

// Flags of timm's and Ultralytics' programs whose names no setting here has, and the setting that does the same.
struct ForeignFlag {
  std::string_view name, setting;
};
constexpr std::array kForeignFlags = {
    ForeignFlag{"b", "loader.batch"},
    ForeignFlag{"bs", "loader.batch"},
    ForeignFlag{"batch_size", "loader.batch"},
    ForeignFlag{"validation_batch_size", "loader.eval_batch"},
    ForeignFlag{"j", "loader.workers"},
    ForeignFlag{"data_dir", "data.root"},
    ForeignFlag{"imgsz", "data.side"},
    ForeignFlag{"img_size", "data.side"},
    ForeignFlag{"num_classes", "data.classes"},
    ForeignFlag{"model", "model.name"},
    ForeignFlag{"drop", "model.dropout"},
    ForeignFlag{"smoothing", "transforms.label_smoothing"},
    ForeignFlag{"opt", "optimizer.name"},
    ForeignFlag{"optimizer", "optimizer.name"},
    ForeignFlag{"lr0", "optimizer.lr"},
    ForeignFlag{"lrf", "schedule.final_factor"},
    ForeignFlag{"wd", "optimizer.weight_decay"},
    ForeignFlag{"sched", "schedule.name"},
    ForeignFlag{"clip_grad", "train.clip_norm"},
    ForeignFlag{"grad_accum_steps", "train.accumulate"},
    ForeignFlag{"model_ema_decay", "train.ema_decay"},
    ForeignFlag{"amp", "train.precision"},
    ForeignFlag{"pretrained", "train.init_from"},
};

// The innermost verb that the command line reached.
const CLI::App& reached_verb(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : reached_verb(*parsed.back());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

// A flag as it was written: --epochs=2 or --epochs 2.
struct Flag {
  std::string word;   // "--epochs"
  std::string value;  // "2", "" if there is none

  Flag(const std::string& written, const std::string& next) {
    const size_t equals = written.find('=');
    word = written.substr(0, equals);
    value = equals != std::string::npos ? written.substr(equals + 1) : next.starts_with("-") ? "" : next;
  }
  std::string bare() const { return word.substr(std::min(word.find_first_not_of('-'), word.size())); }
  std::string key() const {
    std::string key = bare();
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
  }
  std::string shown_value(const std::string& otherwise) const { return value.empty() ? otherwise : printable(value); }
};

// The flag closest to it, "" if none is close. Compared without dashes, which all flags share.
std::string nearest_flag(const Flag& flag, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* level = &app; level; level = level->get_parent())
    for (const CLI::Option* option : level->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back(name);
  const std::string nearest = nearest_name(flag.bare(), names);
  if (flag.bare().size() < 2) return "";
  if (!nearest.empty() || flag.bare().size() < 4) return nearest.empty() ? "" : "--" + nearest;
  // "eps" for "epsilon"
  const auto shortened = std::ranges::find_if(
      names, [&](const std::string& name) { return name.size() >= 3 && flag.bare().starts_with(name); });
  return shortened == names.end() ? "" : "--" + *shortened;
}

// The settings, as "section.key", that a flag or a key without a section means.
std::vector<std::string> settings_called(const std::string& key) {
  std::vector<std::string> found;
  for (const std::string& setting : setting_keys())
    if (setting.substr(setting.find('.') + 1) == key) found.push_back(setting);
  for (const ForeignFlag& flag : kForeignFlags)
    if (found.empty() && flag.name == key) found.emplace_back(flag.setting);
  return found;
}

// "--set train.epochs=2" for --epochs 2 and --epochs=2, "" if no section has such a setting.
std::string to_setting(const Flag& flag, const CLI::App& verb) {
  if (!verb.get_option_no_throw("--set")) return "";
  std::vector<std::string> settings = settings_called(flag.key());
  for (std::string& setting : settings) setting = cat("--set ", setting, "=", flag.shown_value("VALUE"));
  return join(settings, " or ");
}

// The positional argument of that name, or null.
const CLI::Option* positional_called(const std::string& name, const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options())
    if (option->get_positional() && option->get_lnames().empty() && option->get_name() == name) return option;
  return nullptr;
}

std::string unknown_flag(const Flag& flag, const CLI::App& verb) {
  const std::string nearest = nearest_flag(flag, verb), setting = to_setting(flag, verb);
  if (nearest == flag.word)
    return cat("the flag ", nearest, " belongs behind its verb: ", full_name(verb), " ... ", nearest, " ",
               flag.shown_value("VALUE"));
  const std::string what = cat("unknown flag ", printable(flag.word)), help = cat("; see ", full_name(verb), " --help");
  if (const CLI::Option* positional = positional_called(flag.bare(), verb)) {
    const std::vector<std::string> given = positional->results();  // what followed the flag, if not in one word with it
    return cat(what, "; it needs none: ", full_name(verb), " ",
               given.empty() ? flag.shown_value(positional->get_type_name()) : printable(given.front()), help);
  }
  if (flag.bare() == "device" || flag.bare() == "gpu" || flag.bare() == "gpus")
    return cat(what, "; the program computes on the CPU, with as many threads as run.threads or OMP_NUM_THREADS says",
               help);
  return cat(what, did_you_mean(setting.empty() ? nearest : setting), help);
}

}  // namespace

std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = reached_verb(app);
  const std::vector<std::string> verbs = verb_names(verb), extras = app.remaining(true);
  const std::string help = "; see " + full_name(verb) + " --help";
  if (extras.empty() || extras.front() == "--") return cat(printable(error.what()), help);
  const std::string& word = extras.front();
  if (word.size() > 1 && word.front() == '-') return unknown_flag({word, extras.size() > 1 ? extras[1] : ""}, verb);
  if (!verbs.empty())
    return cat("unknown verb \"", printable(word), "\" after ", full_name(verb), suggestion(word, verbs));
  return cat("unexpected argument \"", printable(word), "\"", help);
}

void add_set_option(CLI::App& verb, std::vector<std::string>& overrides, const std::string& help) {
  const auto check = [](const std::string& assignment) -> std::string {
    const std::string key = assignment.substr(0, assignment.find('='));
    if (key.size() == assignment.size() || key.find('.') != std::string::npos) return "";  // Config::set() says it
    std::vector<std::string> settings = settings_called(key);
    for (std::string& setting : settings) setting += assignment.substr(key.size());
    return settings.empty() ? ""
                            : cat("it takes SECTION.KEY=VALUE, got \"", printable(assignment), "\"",
                                  did_you_mean(join(settings, "\" or \"")));
  };
  verb.add_option("--set", overrides, help)
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check, "", "a setting"));
}

}  // namespace sparsight::cli
