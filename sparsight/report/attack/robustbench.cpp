#include "sparsight/report/attack/robustbench.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

struct Leaderboard {
  const char *dataset, *norm, *epsilon_text;
  double epsilon;
  int64_t images;  // of the split that is attacked; 0: not known here
};

// That of ImageNet is of 5,000 chosen images of the validation split.
constexpr Leaderboard kLeaderboards[] = {{"cifar10", "linf", "8/255", 8.0 / 255, 10000},
                                         {"cifar10", "l2", "0.5", 0.5, 10000},
                                         {"cifar100", "linf", "8/255", 8.0 / 255, 10000},
                                         {"imagenet", "linf", "4/255", 4.0 / 255, 0}};

// Null if there is none.
const Leaderboard* find_leaderboard(const std::string& dataset, const std::string& norm) {
  for (const Leaderboard& board : kLeaderboards)
    if (dataset == board.dataset && norm == board.norm) return &board;
  return nullptr;
}

int64_t required_count(const Json& record, const char* key) {
  const std::optional<double> value = number(record, key);
  if (!value || *value < 0 || *value > 1e15) fail("the attack's result is damaged: it has no ", key);
  return static_cast<int64_t>(*value);
}

// "83.34"
std::string accuracy_text(const Json& result, const char* key) {
  const Json& share = member(result, key);
  const int64_t count = required_count(share, "count"), of = required_count(share, "of");
  if (of == 0 || count > of) fail("the attack's result is damaged: ", key, " is of ", of, " images");
  return fixed(100 * static_cast<double>(count) / static_cast<double>(of), 2);
}

void check_robustbench_attack(const Json& result) {
  const Json &attack = member(result, "attack"), &notes = member(result, "notes");
  const std::string name = text(attack, "name"), version = text(attack, "version");
  if (name != "autoattack" || version != "standard")
    fail("RobustBench lists accuracies under the standard AutoAttack, this attack is ",
         printable(name.empty() ? "of another program" : name), version.empty() ? "" : " " + printable(version),
         "; run sparsight attack without --attack");
  if (!notes.empty())
    fail("RobustBench lists accuracies under the standard AutoAttack, but of this one: ",
         printable(notes.front().is_string() ? notes.front().get<std::string>() : shown(notes.front())));
}

void check_robustbench_images(const Json& result, const std::string& dataset, const Leaderboard* board) {
  const Json& data = member(result, "data");
  const int64_t images = required_count(result, "images"), of = required_count(data, "of");
  const std::string split = text(data, "split");
  if (split != "test" && !(split == "val" && dataset == "imagenet"))
    fail("RobustBench lists accuracies on the test split, this attack is of the ", printable(split_name(split)),
         " split");
  if (!member(data, "classes").is_null())
    fail(
        "RobustBench lists accuracies on a whole split, this attack is of some classes; attack without --only-classes");
  if (images != of)
    fail("RobustBench lists accuracies on a whole split, this attack is of ", grouped(images), " of ", grouped(of),
         " images; attack without --images");
  if (board && board->images > 0 && images != board->images)
    fail("RobustBench lists accuracies on the ", grouped(board->images), " test images of ", dataset,
         ", this attack is of ", grouped(images));
}

// "8/255". board: that of the dataset, or else of CIFAR-10.
std::string robustbench_epsilon(const Json& threat, const Leaderboard* board, bool any_epsilon) {
  constexpr double kSame = 1e-6;  // 0.0314 is another epsilon than 8/255, 0.0313725 is not
  const std::optional<double> epsilon = number(threat, "epsilon");
  if (!epsilon) fail("the attack's result is damaged: it has no epsilon");
  if (board && std::abs(*epsilon - board->epsilon) < kSame) return board->epsilon_text;
  const std::string given = printable(text(threat, "given")), norm = printable(text(threat, "norm"));
  if (!any_epsilon)
    fail("RobustBench lists ", norm, board ? cat(" at epsilon ", board->epsilon_text) : " not at all",
         ", this attack is at ", given, "; give --any-eps to write it all the same");
  const size_t unit = given.find(" of pixels in 0..1");
  return unit != std::string::npos ? given.substr(0, unit) : cat(*epsilon);
}

}  // namespace

void RobustBenchFields::declare(OptionSet& set) {
  set.text("link", &link, "address of the paper");
  set.text("name", &name, "title of the paper");
  set.text("authors", &authors, "its authors, separated by commas");
  set.flag("additional_data", &additional_data, "whether other data than the dataset's was trained on");
  set.integer("number_forward_passes", &number_forward_passes, {1, 1000000}, "passes of the model for one answer");
  set.text("dataset", &dataset, "name of the dataset on the leaderboards, if the attack calls it otherwise");
  set.text("venue", &venue, "where the paper was published, such as ICLR 2020");
  set.text("architecture", &architecture, "name of the architecture, such as ResNet-18");
  set.real("reported", &reported, {0, 100}, "robust accuracy that the paper reports, in percent");
  set.text("footnote", &footnote, "a remark below the table");
}

RobustBenchFields parse_robustbench_fields(const std::vector<std::string>& assignments) {
  RobustBenchFields fields;
  OptionSet set;
  fields.declare(set);
  Json table = Json::object();
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      fail_usage("--field takes KEY=VALUE, such as venue=\"ICLR 2020\", got \"", printable(assignment), "\"");
    const std::string key = assignment.substr(0, equals), value = assignment.substr(equals + 1);
    const Option* option = set.find(key);
    table[key] = !option || option->type == "string" ? Json(value) : parse_toml_value(value);
  }
  assign(set, table, "field");
  return fields;
}

RobustBenchEntry robustbench_entry(const Json& result, const RobustBenchFields& fields, bool any_epsilon) {
  check_robustbench_attack(result);
  const Json& threat = member(result, "threat");
  const std::string norm = text(threat, "norm");
  const std::string dataset = fields.dataset.empty() ? text(member(result, "data"), "name") : fields.dataset;
  const Leaderboard* const own = find_leaderboard(dataset, norm);
  check_robustbench_images(result, dataset, own);
  const std::string epsilon = robustbench_epsilon(threat, own ? own : find_leaderboard("cifar10", norm), any_epsilon);
  const std::string robust = accuracy_text(result, "robust_accuracy");
  RobustBenchEntry entry;
  entry.folder = "model_info/" + printable(dataset) + "/" + (norm == "l2" ? "L2" : "Linf");
  entry.info = {
      {"link", fields.link},
      {"name", fields.name},
      {"authors", fields.authors},
      {"additional_data", fields.additional_data},
      {"number_forward_passes", fields.number_forward_passes},
      {"dataset", dataset},
      {"venue", fields.venue},
      {"architecture", fields.architecture.empty() ? text(member(result, "model"), "name") : fields.architecture},
      {"eps", epsilon},
      {"clean_acc", accuracy_text(result, "clean_accuracy")},
      {"reported", std::isnan(fields.reported) ? robust : fixed(fields.reported, 2)},
      {"autoattack_acc", robust}};
  if (!fields.footnote.empty()) entry.info["footnote"] = fields.footnote;
  entry.info["unreliable"] = !member(result, "warnings").empty();
  for (const auto& [key, value] : entry.info.items())
    if (value == Json("")) entry.empty.push_back(key);
  return entry;
}

}  // namespace sparsight
