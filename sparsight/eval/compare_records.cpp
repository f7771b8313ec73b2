#include "sparsight/eval/compare_records.h"

#include <filesystem>

#include <ATen/ops/eq.h>
#include <ATen/ops/where.h>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/eval/recorded_routing.h"
#include "sparsight/eval/statistics.h"

namespace sparsight {
namespace {

std::string both(const Records& a, const Records& b) {
  return cat("the records ", printable(a.folder), " and ", printable(b.folder));
}

constexpr const char* kAdvice = "; evaluate both models on the same images";

void check_same_images(const Records& a, const Records& b) {
  if (a.data != b.data)
    fail(both(a, b), " are of different datasets: ", printable(a.data), " and ", printable(b.data), kAdvice);
  if (a.classes != b.classes) fail(both(a, b), " have different classes", kAdvice);
  if (a.images() != b.images()) fail(both(a, b), " are of ", a.images(), " and ", b.images(), " images", kAdvice);
  for (size_t i = 0; i < a.ids.size(); ++i)
    if (a.ids[i] != b.ids[i])
      fail(both(a, b), " are of different images: image ", i, " is ", printable(a.ids[i]), " and ", printable(b.ids[i]),
           kAdvice);
  if (a.multi_label() != b.multi_label() || (a.multi_label() && !a.label_sets.equal(b.label_sets)))
    fail(both(a, b), " give images different classes", kAdvice);
  const int64_t *labels_a = a.label.const_data_ptr<int64_t>(), *labels_b = b.label.const_data_ptr<int64_t>();
  for (size_t i = 0; i < a.ids.size(); ++i)
    if (labels_a[i] != labels_b[i])
      fail(both(a, b), " give the image ", printable(a.ids[i]),
           " different classes: ", printable(a.classes[static_cast<size_t>(labels_a[i])]), " and ",
           printable(a.classes[static_cast<size_t>(labels_b[i])]), kAdvice);
}

std::vector<double> correct_flags(const Records& records) {
  const at::Tensor right = records.correct().to(at::kDouble).contiguous();
  return {right.const_data_ptr<double>(), right.const_data_ptr<double>() + right.numel()};
}

Json interval_json(const Interval& interval) { return {interval.low, interval.high}; }

Json side(const Records& records, const std::vector<double>& right) {
  const auto correct = static_cast<int64_t>(std::ssize(right) * mean(right) + 0.5);
  return {{"records", printable(records.folder)},
          {"checkpoint", printable(records.checkpoint)},
          {"correct", correct},
          {"accuracy", mean(right)},
          {"interval", interval_json(wilson_interval(correct, std::ssize(right)))},
          {"robust", records.robust},
          {"routing", recorded_routing(records)}};
}

// "linf, epsilon 0.0157 of pixels in 0..1, by pgd, targeted at 3", of records of attacked images; else "not attacked".
std::string describe_attack(const Json& settings) {
  const Json attack = settings.value("attack", Json());
  if (!attack.is_object()) return "not attacked";
  const auto part = [&](const char* key) {
    const Json value = attack.value(key, Json());
    return printable(value.is_string() ? value.get<std::string>() : shown(value));
  };
  const Json& stages = member(attack, "stages");
  const std::string target =
      stages.is_array() && stages.size() == 1 ? text(member(stages[0], "settings"), "target") : std::string();
  return cat(part("norm"), ", epsilon ", part("epsilon"), " of pixels in ", part("range"), ", by ", part("name"),
             target.empty() || target == "none" ? "" : ", targeted at " + printable(target));
}

// Settings that may make the pixels differ although the ids are the same.
Json notes_on(const Records& a, const Records& b) {
  Json notes = Json::array();
  for (const auto& [name, records] : {std::pair{"A", &a}, {"B", &b}})
    if (records->robust)
      notes.push_back(cat(name, ": robust accuracy, of images that are right before and after the attack"));
  if (!a.settings.is_object() || !b.settings.is_object()) return notes;
  if (a.settings.value("attack", Json()) != b.settings.value("attack", Json()))
    notes.push_back(cat("the attacks differ: A ", describe_attack(a.settings), "; B ", describe_attack(b.settings)));
  const Json data_a = a.settings.value("data", Json::object()), data_b = b.settings.value("data", Json::object());
  if (!data_a.is_object() || !data_b.is_object()) return notes;
  for (const auto& [key, value] : data_a.items())
    if (key != "root" && data_b.value(key, Json()) != value)
      notes.push_back(cat("data.", printable(key), " differs (", printable(shown(value)), ", ",
                          printable(shown(data_b.value(key, Json()))),
                          "): the images may not be the same although their ids are"));
  return notes;
}

}  // namespace

Records read_compared(const std::string& path) {
  namespace fs = std::filesystem;
  Records records = read_records(records_folder(path), {.logits = false});
  std::error_code error;
  const std::string clean = (fs::path(path) / "clean_records").string();
  if (!fs::exists(fs::path(path) / "attack.json", error) || !fs::exists(clean, error)) return records;
  const Records before = read_records(clean, {.logits = false, .experts = false});
  check_same_images(before, records);
  records.prediction = at::where(before.correct(), records.prediction, before.prediction);
  records.robust = true;
  return records;
}

Json compare_records(const Records& a, const Records& b) {
  check_same_images(a, b);
  const std::vector<double> right_a = correct_flags(a), right_b = correct_flags(b);
  int64_t counts[2][2] = {};  // [a is right][b is right]
  for (size_t i = 0; i < right_a.size(); ++i) ++counts[right_a[i] > 0][right_b[i] > 0];
  const McNemar test = mcnemar(counts[1][0], counts[0][1]);
  Json difference;
  if (right_a.size() > 1) {
    const PairedDifference paired = paired_difference(right_a, right_b);
    difference = {
        {"mean", paired.mean}, {"standard_error", paired.standard_error}, {"interval", interval_json(paired.interval)}};
  }
  return {{"data", printable(a.data)},
          {"split", printable(a.split)},
          {"images", a.images()},
          {"multi_label", a.multi_label()},
          {"a", side(a, right_a)},
          {"b", side(b, right_b)},
          {"both", counts[1][1]},
          {"only_a", counts[1][0]},
          {"only_b", counts[0][1]},
          {"neither", counts[0][0]},
          {"mcnemar",
           {{"p_value", test.p_value},
            {"exact", test.exact},
            {"statistic", test.statistic ? Json(*test.statistic) : Json()}}},
          {"difference", std::move(difference)},
          {"notes", notes_on(a, b)}};
}

}  // namespace sparsight
