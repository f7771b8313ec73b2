#include "sparsight/core/config.h"

#include <filesystem>

#include "sparsight/core/input_file.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

const SectionVariant& chosen_variant(const Section& section, const Json& table) {
  if (section.default_variant.empty()) return section.variants.front();
  std::string name = section.default_variant;
  if (table.contains("name")) {
    if (!table["name"].is_string()) fail_usage(section.name, ".name must be a string, got ", shown(table["name"]));
    name = table["name"].get<std::string>();
  }
  return entry_named(name, section.variants, section.name + ".name");
}

// Calls `visit` with the options of the variant, and with those that all variants of the section share.
void describe_all(const Section& section, const SectionVariant& variant, const std::function<void(OptionSet&)>& visit) {
  variant.describe(visit);
  if (section.describe_shared) section.describe_shared(visit);
}

std::vector<std::string> setting_names(const Section& section, const SectionVariant& variant) {
  std::vector<std::string> names;
  describe_all(section, variant, [&](const OptionSet& set) {
    for (const Option& option : set.options()) names.push_back(option.name);
  });
  return names;
}

// The configuration file in the folder of `path` that was probably meant; "" if there is none.
std::string nearest_file(const fs::path& path) {
  std::vector<std::string> stems;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".toml") stems.push_back(entry.path().stem().string());
  std::ranges::sort(stems);
  const std::string stem = nearest_name(path.stem().string(), stems);
  return stem.empty() ? "" : (path.parent_path() / (stem + ".toml")).string();
}

std::string read_config_file(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error) && !error)
    fail_usage("cannot read the configuration ", printable(path), ": No such file or directory",
               did_you_mean(nearest_file(path)));
  try {
    return read_file_or_pipe(path, kMaxConfigBytes, "read the configuration");
  } catch (const Error& failure) {
    fail_usage(failure.what());
  }
}

constexpr size_t kMaxBases = 8;

// The path of the configuration that `file` builds upon, taken out of its document; "" if it names none.
std::string take_base(TomlDocument& document, const std::string& file) {
  const Json base = document.tree.value("base", Json(""));
  if (base.is_object() || !document.tree.contains("base")) return "";
  if (!base.is_string() || base.get<std::string>().empty())
    fail_usage(printable(file), ":", document.lines["base"], ": base must be the path of a configuration, got ",
               shown(base));
  document.tree.erase("base");
  return (fs::path(file).parent_path() / base.get<std::string>()).string();
}

// The setting that was probably meant by the unknown `key` in `section`: one of that name in another section
// ("optimizer.lr"), else one of a similar name in this section ("epochs") or another.
std::string meant_setting(const std::string& key, const std::string& section, const Config& config,
                          const std::vector<Section>& sections) {
  std::vector<std::string> own, others, others_in_full;
  for (const Section& other : sections) {
    const Json table = config.tree().value(other.name, Json::object());
    for (const std::string& name : setting_names(other, chosen_variant(other, table))) {
      if (other.name == section) {
        own.push_back(name);
      } else {
        others.push_back(name);
        others_in_full.push_back(other.name + "." + name);
      }
    }
  }
  std::string near = nearest_name(key, own);
  const std::string elsewhere = nearest_name(key, others);
  if (elsewhere.empty() || (elsewhere != key && !near.empty())) return near;
  return others_in_full[find_position(elsewhere, others, "setting")];
}

// Runs `check` and prefixes its error with the line that sets `setting`: "my.toml:12: ".
template <class Check>
void check_at(const Config& config, const std::string& setting, Check check) {
  try {
    check();
  } catch (const UsageError& error) {
    const std::string origin = config.origin(setting);
    if (origin.find(':') == std::string::npos) throw;
    fail_usage(printable(origin), ": ", error.what());
  }
}

// The names of sections, and of the components that they choose.
void check_names(const Config& config, const std::vector<Section>& sections) {
  std::vector<std::string> names;
  for (const Section& section : sections) names.push_back(section.name);
  for (const auto& item : config.tree().items()) {
    const std::string& name = item.key();
    if (std::ranges::find(names, name) == names.end())
      check_at(config, item.value().empty() ? "" : name + "." + item.value().begin().key(),
               [&] { fail_usage("unknown section [", printable(name), "]", suggestion(name, names)); });
  }
  for (const Section& section : sections)
    check_at(config, section.name + ".name",
             [&] { chosen_variant(section, config.tree().value(section.name, Json::object())); });
}

// Sets the options of `section` from `table`.
void assign_section(OptionSet& set, const Json& table, const std::string& section, const Config& config,
                    const std::vector<Section>& sections) {
  for (const auto& item : table.items()) {
    const std::string &key = item.key(), full = section + "." + key;
    check_at(config, full, [&] {
      const std::string meant = set.find(key) ? "" : meant_setting(key, section, config, sections);
      if (meant.find('.') != std::string::npos) fail_usage("unknown setting ", printable(full), did_you_mean(meant));
      assign(set, Json{{key, item.value()}}, section);
    });
  }
}

// The component that `table` names; null where there is none, which resolve() complains about.
const SectionVariant* known_variant(const Section& section, const Json& table) {
  try {
    return &chosen_variant(section, table);
  } catch (const UsageError&) {
    return nullptr;
  }
}

// Whether the component has the setting and takes the value.
bool takes(const Section& section, const SectionVariant& variant, const std::string& key, const Json& value,
           const Json& tree) {
  const Json settings{{key, value}};
  try {
    variant.describe([&](OptionSet& set) { assign(set, settings, section.name); });
    if (section.try_component) section.try_component(variant.name, settings, tree);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

bool is_shared(const Section& section, const std::string& key) {
  bool shared = false;
  if (section.describe_shared) section.describe_shared([&](OptionSet& set) { shared = set.find(key) != nullptr; });
  return shared;
}

}  // namespace

Config overridden(Config config, const std::vector<std::string>& overrides, const std::vector<Section>& sections,
                  std::vector<std::string>* ignored) {
  const Json before = config.tree();
  for (const std::string& assignment : overrides) config.set(assignment);
  for (const Section& section : sections) {
    if (section.default_variant.empty() || config.origin(section.name + ".name") != "--set") continue;
    const Json old_table = before.value(section.name, Json::object());
    const SectionVariant* old_variant = known_variant(section, old_table);
    const SectionVariant* variant = known_variant(section, config.tree()[section.name]);
    if (!old_variant || !variant || variant == old_variant) continue;
    for (const auto& [key, value] : old_table.items()) {
      const std::string origin = config.origin(section.name + "." + key);
      if (key == "name" || origin == "--set" || is_shared(section, key)) continue;
      if (takes(section, *variant, key, value, config.tree()) || !takes(section, *old_variant, key, value, before))
        continue;
      if (ignored)
        ignored->push_back(cat(section.name, ".", key, " = ", shown(value), " of ", printable(origin),
                               " does not apply to ", variant->name, ": ignored"));
      config.erase(section.name, key);
    }
  }
  return config;
}

Config Config::from_file(const std::string& path) { return from_file(path, {}); }

Config Config::from_file(const std::string& path, std::vector<std::string> above) {
  TomlDocument document = parse_toml(read_config_file(path), path);
  const std::string line = cat(printable(path), ":", document.lines["base"], ": "), base = take_base(document, path);
  const Config own = from_document(std::move(document), path);
  if (base.empty()) return own;
  above.push_back(path);
  std::error_code ignored;
  if (std::ranges::any_of(above, [&](const std::string& file) { return fs::equivalent(file, base, ignored); }))
    fail_usage(line, "base leads back to ", printable(base), ", which has this file as its base");
  if (above.size() > kMaxBases) fail_usage(line, "this is the base number ", above.size(), "; at most ", kMaxBases);
  Config config;
  try {
    config = from_file(base, std::move(above));
  } catch (const UsageError& error) {
    fail_usage(line, "in its base: ", error.what());
  }
  config.replace_with(own);
  return config;
}

void Config::replace_with(const Config& other) {
  for (const auto& [section, table] : other.tree_.items()) {
    const Json before = tree_.value(section, Json::object());
    if (table.contains("name") && before.value("name", Json()) != table["name"])
      for (const auto& item : before.items()) erase(section, item.key());
    for (const auto& [key, value] : table.items()) set(section, key, value, other.origin(section + "." + key));
  }
}

Config Config::from_text(const std::string& text, const std::string& origin) {
  return from_document(parse_toml(text, origin), origin);
}

Config Config::from_document(TomlDocument document, const std::string& origin) {
  Config config;
  for (const auto& [section, table] : document.tree.items()) {
    if (!table.is_object())
      fail_usage(origin, ":", document.lines[section], ": \"", printable(section),
                 "\" is outside any [section]; move it into one");
    for (const auto& [key, value] : table.items()) {
      const std::string full = section + "." + key;
      config.origins_[full] = cat(origin, ":", document.lines[full]);
    }
  }
  config.tree_ = std::move(document.tree);
  return config;
}

Config Config::from_tables(const Json& tables, const std::string& origin) {
  Config config;
  config.tree_ = Json::object();
  for (const auto& [section, table] : tables.items()) {
    if (!table.is_object()) fail_usage("[", printable(section), "] must be a table, got ", shown(table));
    for (const auto& [key, value] : table.items()) config.set(section, key, value, origin);
  }
  return config;
}

void Config::set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  const size_t dot = assignment.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals || dot == 0 || dot + 1 == equals)
    fail_usage("--set takes section.key=value (for example train.epochs=3), got \"", printable(assignment), "\"");
  // The run keeps its settings as TOML, which is UTF-8.
  if (!is_utf8(assignment))
    fail_usage(printable(assignment.substr(0, equals)), " must be UTF-8, got \"",
               printable(assignment.substr(equals + 1)), "\"; give a path of other bytes a link with a UTF-8 name");
  set(assignment.substr(0, dot), assignment.substr(dot + 1, equals - dot - 1),
      parse_toml_value(assignment.substr(equals + 1)), "--set");
}

void Config::set(const std::string& section, const std::string& key, Json value, const std::string& origin) {
  tree_[section][key] = std::move(value);
  origins_[section + "." + key] = origin;
}

void Config::erase(const std::string& section, const std::string& key) {
  tree_[section].erase(key);
  origins_.erase(section + "." + key);
}

std::string Config::origin(const std::string& key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? "default" : found->second;
}

namespace {

// Adds the settings of a preset of one section to `config`.
void add_preset(Config& config, const Section& section, Json settings, const std::string& origin) {
  const Json own = config.tree().value(section.name, Json::object());
  if (settings.contains("name")) {
    if (own.contains("name") && own["name"] != settings["name"]) return;
    if (!own.contains("name")) config.set(section.name, "name", settings["name"], origin);
    settings.erase("name");
  }
  const SectionVariant* const variant = known_variant(section, config.tree().value(section.name, Json::object()));
  if (!variant) return;
  const std::vector<std::string> names = setting_names(section, *variant);
  for (const auto& [key, value] : settings.items())
    if (!own.contains(key) && std::ranges::find(names, key) != names.end())
      config.set(section.name, key, value, origin);
}

}  // namespace

Config with_presets(Config config, const std::vector<Section>& sections) {
  for (const Section& chooser : sections) {
    if (!chooser.preset) continue;
    const Preset preset = chooser.preset(config.tree());
    for (const Section& section : sections)
      if (preset.settings.contains(section.name))
        add_preset(config, section, preset.settings.at(section.name), preset.origin);
  }
  return config;
}

Json resolve(const Config& given, const std::vector<Section>& sections) {
  const Config config = with_presets(given, sections);
  check_names(config, sections);
  Json resolved = Json::object();
  for (const Section& section : sections) {
    Json table = config.tree().value(section.name, Json::object());
    const SectionVariant& variant = chosen_variant(section, table);
    Json& target = resolved[section.name] = Json::object();
    if (!section.default_variant.empty()) {
      target["name"] = variant.name;
      table.erase("name");
    }
    Json shared = Json::object();
    if (section.describe_shared)
      section.describe_shared([&](OptionSet& set) {
        for (const Option& option : set.options())
          if (table.contains(option.name)) {
            shared[option.name] = table[option.name];
            table.erase(option.name);
          }
        assign_section(set, shared, section.name, config, sections);
        shared = values(set);
      });
    variant.describe([&](OptionSet& set) {
      assign_section(set, table, section.name, config, sections);
      target.update(values(set));
    });
    target.update(shared);
  }
  return resolved;
}

}  // namespace sparsight
