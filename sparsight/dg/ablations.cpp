#include "sparsight/dg/ablations.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/named_once.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"

namespace sparsight {
namespace {

// A factor that is one setting; each value is its own name.
Ablation of_values(const std::string& name, const std::string& summary, const std::string& key,
                   const std::vector<std::string>& values) {
  Ablation ablation{name, summary, {}};
  for (const std::string& value : values) ablation.settings.push_back({value, {key + "=" + value}});
  return ablation;
}

Ablation on_or_off(const std::string& name, const std::string& summary, const std::string& on, const std::string& off) {
  return {name, summary, {{"on", {on}}, {"off", {off}}}};
}

}  // namespace

std::vector<int64_t> every_two_blocks(int64_t depth) {
  std::vector<int64_t> blocks;
  for (int64_t block = 0; block < depth; block += 2) blocks.push_back(block);
  return blocks;
}

std::vector<int64_t> last_two_blocks(int64_t depth) {
  const std::vector<int64_t> even = every_two_blocks(depth);
  return {even.end() - std::min<int64_t>(2, std::ssize(even)), even.end()};
}

std::string blocks_setting(const std::vector<int64_t>& blocks) {
  std::vector<std::string> numbers;
  for (const int64_t block : blocks) numbers.push_back(std::to_string(block));
  return "moe.blocks=[" + join(numbers, ",") + "]";
}

const std::vector<Ablation>& gmoe_ablations() {
  static const std::vector<Ablation> all{
      {"router",
       "how tokens choose experts",
       {{"cosine", {"router.name=cosine"}}, {"linear", {"router.name=softmax_topk"}}}},
      {"temperature",
       "of the cosine router",
       {{"learned", {"router.learn_temperature=true"}}, {"fixed", {"router.learn_temperature=false"}}}},
      {"placement",
       "the blocks with MoE layers",
       {{"last two", {}, last_two_blocks}, {"every two", {}, every_two_blocks}}},
      of_values("experts", "their number in a layer", "moe.experts", {"2", "4", "6", "8", "12"}),
      of_values("k", "experts per token", "router.k", {"1", "2", "4"}),
      on_or_off("noise", "of the router in training", "router.noise=1", "router.noise=0"),
      on_or_off("importance_loss", "auxiliary", "losses.vmoe_importance=-1", "losses.vmoe_importance=0"),
      on_or_off("load_loss", "auxiliary", "losses.vmoe_load=-1", "losses.vmoe_load=0"),
      {"initial_experts",
       "copies of a dense MLP or random; needs train.init_from",
       {{"upcycled", {"train.upcycle=copy"}}, {"random", {"train.upcycle=random"}}}},
      of_values("size", "of the ViT", "model.size", {"tiny", "small", "base"})};
  return all;
}

std::vector<Ablation> ablations_named(const std::vector<std::string>& names) {
  std::vector<Ablation> found;
  check_named_once(names, "factor");
  for (const std::string& name : names) found.push_back(entry_named(name, gmoe_ablations(), "factor to vary"));
  return found;
}

Ablation own_ablation(const std::string& text) {
  const size_t equals = text.find('='), dot = text.find('.');
  const std::vector<std::string> values = split_toml_values(equals == std::string::npos ? "" : text.substr(equals + 1));
  const bool has_key = equals != std::string::npos && dot != std::string::npos && dot > 0 && dot + 1 < equals;
  if (!has_key || std::ranges::count(values, "") > 0)
    fail_usage("what to vary is SECTION.KEY=VALUE,VALUE,..., such as router.k=1,2; got \"", printable(text), "\"");
  for (const std::string& value : values)
    if (std::ranges::count(values, value) > 1)
      fail_usage("\"", printable(text), "\" has the value ", printable(value), " twice; give each once");
  const std::string key = text.substr(0, equals);
  return of_values(key, "", key, values);
}

}  // namespace sparsight
