#include "sparsight/train/checkpoint_by_rank.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/dist/rank_zero.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/part_files.h"
#include "sparsight/io/sharded_names.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

// What this rank has to write, and how the index names it.
struct Part {
  NamedTensors tensors;
  std::vector<std::string> order;          // of all tensors that this rank has, those of other ranks' experts included
  std::map<std::string, int64_t> experts;  // layer -> how many all ranks have
};

// The names of the tensors that each rank has, by rank.
std::vector<std::set<std::string>> names_of_ranks(dist::Group& group, const NamedTensors& tensors) {
  Json own = Json::array();
  for (const auto& [name, tensor] : tensors) own.push_back(name);
  std::vector<std::set<std::string>> names;
  for (const std::string& text : group.all_gather_bytes(own.dump()))
    names.push_back(Json::parse(text).get<std::set<std::string>>());
  return names;
}

int64_t first_rank_with(const std::string& name, const std::vector<std::set<std::string>>& names) {
  return std::ranges::find_if(names, [&](const auto& of_rank) { return of_rank.contains(name); }) - names.begin();
}

// A tensor of experts that are spread: each rank of one copy writes those of its own experts.
void add_experts(Part& part, const std::string& name, const at::Tensor& tensor, const SpreadParameters& spread) {
  const dist::ExpertRanks& ranks = spread.ranks();
  const ExpertTensorName expert = *parse_stacked_name(name);
  const int64_t own = tensor.size(0), all = own * ranks.parts->size(), first = ranks.parts->rank() * own;
  part.experts[expert.experts_path()] = all;
  for (int64_t e = 0; e < all; ++e) {
    part.order.push_back(expert.of_expert(e));
    if (ranks.copies->leads() && e >= first && e < first + own)
      part.tensors.emplace_back(part.order.back(), tensor.select(0, e - first));
  }
}

Part own_part(const NamedTensors& tensors, const SpreadParameters& spread, dist::Group& group) {
  const std::vector<std::set<std::string>> names = names_of_ranks(group, tensors);
  Part part;
  for (const auto& [name, tensor] : tensors) {
    if (spread.is_part(name, tensor)) {
      add_experts(part, name, tensor, spread);
      continue;
    }
    part.order.push_back(name);
    if (first_rank_with(name, names) == group.rank()) part.tensors.emplace_back(name, tensor);
  }
  return part;
}

// Writes this rank's file, if there is anything to write. Returns what the others have to know of it.
Json write_part(const std::string& path, int64_t write, const Part& part, const dist::Group& group) {
  Json report{{"order", part.order}, {"tensors", Json::array()}, {"bytes", 0}, {"error", ""}};
  if (part.tensors.empty()) return report;
  const std::string name = part_name(path, write, group.rank(), group.size());
  int64_t bytes = 0;
  for (const auto& [tensor_name, tensor] : part.tensors) {
    report["tensors"].push_back(tensor_name);
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  report["file"] = name, report["bytes"] = bytes;
  try {
    write_safetensors((fs::path(path).parent_path() / name).string(), {part.tensors, {{"format", "pt"}}});
  } catch (const Error& error) {
    report["error"] = error.what();
  }
  return report;
}

// Brings the state of an optimiser that is divided among the ranks into the order of one process: by kind of state,
// then by parameter, both as they first appear.
void sort_optimizer_state(std::vector<std::string>& names) {
  const std::string prefix = "training/" + std::string(kOptimizerTensors);
  const auto is_state = [&](const std::string& name) { return name.starts_with(prefix); };
  std::map<std::string, size_t> parameters, slots;
  std::vector<std::string> states, others;
  for (const std::string& name : names) {
    (is_state(name) ? states : others).push_back(name);
    if (is_state(name))
      slots.emplace(name.substr(name.rfind('/')), slots.size());
    else if (!is_training_name(name))
      parameters.emplace(name, parameters.size());
  }
  const auto before = std::ranges::find_if(names, is_state) - names.begin();
  const auto place = [&](const std::string& name) {
    const size_t slash = name.rfind('/');
    const auto parameter = parameters.find(name.substr(prefix.size(), slash - prefix.size()));
    return std::pair{slots.at(name.substr(slash)), parameter == parameters.end() ? size_t{0} : parameter->second};
  };
  std::ranges::stable_sort(states, std::less<>(), place);
  others.insert(others.begin() + before, states.begin(), states.end());
  names = std::move(others);
}

// reports: of write_part(), by rank.
std::string index_text(const std::vector<Json>& reports, const Part& part, const TensorFile& whole, bool divided) {
  std::map<std::string, std::string> file_of;
  std::vector<std::string> order;
  std::set<std::string> seen;
  int64_t bytes = 0;
  for (const Json& report : reports) {
    bytes += report.at("bytes").get<int64_t>();
    for (const Json& name : report.at("tensors"))
      file_of[name.get<std::string>()] = report.at("file").get<std::string>();
    for (const Json& name : report.at("order"))
      if (seen.insert(name.get<std::string>()).second) order.push_back(name.get<std::string>());
  }
  if (divided) sort_optimizer_state(order);
  Json index{{"metadata", {{"total_size", bytes}, {"experts", part.experts}, {"safetensors", whole.metadata}}},
             {"weight_map", Json::object()}};
  for (const std::string& name : order) index["weight_map"][name] = file_of.at(name);
  return index.dump(2) + "\n";
}

}  // namespace

void write_checkpoint_by_rank(const std::string& path, const Checkpoint& checkpoint, const SpreadParameters& spread,
                              dist::Group& group) {
  const TensorFile whole = checkpoint_file(checkpoint);
  const auto write = std::stoll(group.broadcast(group.leads() ? std::to_string(next_part_write(path)) : ""));
  const Part part = own_part(whole.tensors, spread, group);
  std::vector<Json> reports;
  for (const std::string& text : group.all_gather_bytes(write_part(path, write, part, group).dump()))
    reports.push_back(Json::parse(text));
  for (size_t rank = 0; rank < reports.size(); ++rank)
    if (const auto error = reports[rank].at("error").get<std::string>(); !error.empty())
      fail("rank ", rank, " could not write its part of the checkpoint: ", error);
  dist::from_rank_zero(group, [&] {
    write_file_atomically(part_index(path), index_text(reports, part, whole, spread.empty()));
    remove_all_but_write(path, write);
    return std::string();
  });
}

}  // namespace sparsight
