// A registry is a list of named things that someone can read, filled by explicit calls (never static initialisers).
// An unknown name is an error with the closest name and the full list.
//
//   Registry<Router, int64_t /*width*/> routers("router");
//   routers.add<TopKRouterOptions>("softmax_topk", "softmax, then top-k (V-MoE)", make_topk_router);
//   auto router = routers.make("softmax_topk", Json{{"k", 2}}, "router", width);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/options.h"

namespace sparsight {

// Settings of a component that have a name of their own, such as a published size.
struct NamedSettings {
  std::string name;
  Json settings = Json::object();
};

template <class Product, class... Context>
class Registry {
 public:
  struct Entry {
    std::string name;
    std::string summary;
    // Calls `visit` with the options at their defaults, for documentation and `config show`.
    std::function<void(const std::function<void(OptionSet&)>& visit)> describe;
    std::function<Product(const Json& settings, const std::string& where, Context... context)> make;
    std::vector<NamedSettings> variants = {};  // those of the options, if they declare any: static variants()
  };

  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  template <class Options, class Factory>
  void add(const std::string& name, const std::string& summary, Factory factory) {
    for (const Entry& other : entries_)
      if (other.name == name)
        fail_usage("there is a ", kind_, " \"", name, "\" already; register it under another name");
    Entry entry;
    entry.name = name;
    entry.summary = summary;
    entry.describe = [](const std::function<void(OptionSet&)>& visit) {
      Options options;
      OptionSet set;
      options.declare(set);
      visit(set);
    };
    check_settings(entry);
    entry.make = [factory](const Json& settings, const std::string& where, Context... context) {
      Options options;
      OptionSet set;
      options.declare(set);
      assign(set, settings, where);
      return Product(factory(options, context...));
    };
    if constexpr (requires { Options::variants(); }) entry.variants = Options::variants();
    entries_.push_back(std::move(entry));
  }

  // Options of the section that all its components share. They are not the components' own:
  // the owner of the section reads them (read_shared of config.h).
  template <class Shared>
  void share() {
    describe_shared_ = [](const std::function<void(OptionSet&)>& visit) {
      Shared options;
      OptionSet set;
      options.declare(set);
      visit(set);
    };
  }
  // Null if nothing is shared.
  const std::function<void(const std::function<void(OptionSet&)>& visit)>& describe_shared() const {
    return describe_shared_;
  }

  const std::vector<Entry>& entries() const { return entries_; }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

  const Entry& get(const std::string& name) const { return entry_named(name, entries_, kind_); }

  // `settings`: the section without the component's name. `where`: the configuration section, for errors.
  Product make(const std::string& name, Json settings, const std::string& where, Context... context) const {
    if (describe_shared_)
      describe_shared_([&](OptionSet& set) {
        for (const Option& option : set.options()) settings.erase(option.name);
      });
    return get(name).make(settings, where, context...);
  }

 private:
  // `name` chooses the component, and shared settings have the same key.
  void check_settings(const Entry& entry) const {
    entry.describe([&](const OptionSet& own) {
      const auto refuse = [&](const std::string& key) {
        if (own.find(key))
          fail_usage("the ", kind_, " \"", entry.name, "\" declares a setting \"", key, "\", which every ", kind_,
                     " has; give it another name");
      };
      refuse("name");
      if (describe_shared_)
        describe_shared_([&](const OptionSet& shared) {
          for (const Option& option : shared.options()) refuse(option.name);
        });
    });
  }

  std::string kind_;
  std::function<void(const std::function<void(OptionSet&)>& visit)> describe_shared_;
  std::vector<Entry> entries_;
};

}  // namespace sparsight
