// A configuration: settings in sections, from a TOML file and --set overrides, checked against the declared options.
//
// A section is either plain (one set of options, such as [train]) or names a registered component, whose options then
// live in the same section ([router] name = "softmax_topk", k = 2).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/core/registry.h"
#include "sparsight/core/toml.h"

namespace sparsight {

// One component that a section can name, or the only one of a plain section (its name is then "").
struct SectionVariant {
  std::string name;
  std::string summary;
  std::function<void(const std::function<void(OptionSet&)>& visit)> describe;
};

// Defaults of settings in several sections that one setting chooses, such as a training recipe.
struct Preset {
  std::string origin;              // "recipe deit", for `config show`
  Json settings = Json::object();  // {section: {name?, key: value}}
};

struct Section {
  std::string name;
  std::string help;
  std::string default_variant;  // "" for a plain section
  std::vector<SectionVariant> variants;
  // Settings that all components of the section share; null for none.
  std::function<void(const std::function<void(OptionSet&)>& visit)> describe_shared = {};
  // Text that the documentation appends to a component's summary; null for none.
  std::function<std::string(const std::string& component)> remark = {};
  // Raises UsageError where a component refuses `settings` although each is in its bounds (a router with a fixed k);
  // tree: the whole configuration. Null where bounds say it all.
  std::function<void(const std::string& component, const Json& settings, const Json& tree)> try_component = {};
  // What a setting of this section presets, as a function of the whole configuration, whose values may be of any type;
  // null for nothing.
  std::function<Preset(const Json& tree)> preset = {};
};

// A plain section of the options struct `Options`.
template <class Options>
Section plain_section(const std::string& name, const std::string& help) {
  return {name, help, "", {{"", help, [](const std::function<void(OptionSet&)>& visit) {
                              Options options;
                              OptionSet set;
                              options.declare(set);
                              visit(set);
                            }}}};
}

// A section whose `name` key picks an entry of `registry`.
template <class Product, class... Context>
Section named_section(const std::string& name, const std::string& help, const std::string& default_variant,
                      const Registry<Product, Context...>& registry) {
  Section section{name, help, default_variant, {}, registry.describe_shared()};
  for (const auto& entry : registry.entries()) section.variants.push_back({entry.name, entry.summary, entry.describe});
  return section;
}

class Config {
 public:
  // A file may begin with `base = "other.toml"`, relative to its own folder: it then has that file's settings, which
  // may have a base too, wherever it has none of its own; a section that names another component has its own settings
  // alone. Raises UsageError if a file cannot be read or is not TOML, and for bases that form a circle.
  static Config from_file(const std::string& path);
  static Config from_text(const std::string& text, const std::string& origin);
  // {"section": {"key": value}} that was in no file. origin: what errors and origin() say of every setting. Raises
  // UsageError for a section that is no table.
  static Config from_tables(const Json& tables, const std::string& origin);

  // An override "section.key=value", as after --set. The value is TOML; a bare word is text.
  void set(const std::string& assignment);
  void set(const std::string& section, const std::string& key, Json value, const std::string& origin);
  void erase(const std::string& section, const std::string& key);

  const Json& tree() const { return tree_; }
  // Where "section.key" got its value: "vit.toml:12", "--set" or "default".
  std::string origin(const std::string& key) const;

 private:
  static Config from_document(TomlDocument document, const std::string& origin);
  // above: the files whose base this one is, the first one first.
  static Config from_file(const std::string& path, std::vector<std::string> above);
  void replace_with(const Config& other);

  Json tree_;
  std::map<std::string, std::string> origins_;
};

// `config` with overrides as after --set. Where one names another component of a section ("router.name=hash"), those
// settings that `config` has for its own component and the new one does not have, or refuses, are left out, and
// `ignored` receives a line for each. What `overrides` set, and what neither component has, stays: resolve() says so.
Config overridden(Config config, const std::vector<std::string>& overrides, const std::vector<Section>& sections,
                  std::vector<std::string>* ignored = nullptr);

// `config` with the presets of `sections` where it has no value of its own. A preset of a section that names a
// component is for that component: where `config` names another one, the section keeps its defaults. Settings that the
// chosen component does not have are left out.
Config with_presets(Config config, const std::vector<Section>& sections);

// Checks `config`, with its presets, against `sections` and returns every setting of every section with its value, in
// declaration order
// ({section: {name?, key: value}}). Unknown sections, components and keys raise UsageError naming the nearest one and,
// where a file has them, the line.
Json resolve(const Config& config, const std::vector<Section>& sections);

// One section of a resolved configuration, bound to an options struct.
template <class Options>
Options read_section(const Json& resolved, const std::string& section) {
  Options options;
  OptionSet set;
  options.declare(set);
  assign(set, resolved.at(section), section);
  return options;
}

// The options of a named section in addition to those of its component (Registry::share). Missing ones keep their
// defaults.
template <class Options>
Options read_shared(const Json& resolved, const std::string& section) {
  Options options;
  OptionSet set;
  options.declare(set);
  Json own = Json::object();
  for (const Option& option : set.options())
    if (resolved.at(section).contains(option.name)) own[option.name] = resolved.at(section).at(option.name);
  assign(set, own, section);
  return options;
}

// The component that a named section of a resolved configuration chooses.
template <class Product, class... Context>
Product make_component(const Registry<Product, Context...>& registry, const Json& resolved, const std::string& section,
                       Context... context) {
  Json settings = resolved.at(section);
  const std::string name = settings.at("name").template get<std::string>();
  settings.erase("name");
  return registry.make(name, settings, section, context...);
}

}  // namespace sparsight
