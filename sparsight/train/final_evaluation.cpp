// The end of a training: its weights are tested, and the log is closed.
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/machine.h"
#include "sparsight/eval/confused_images.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/moe/setting_schedule.h"
#include "sparsight/report/run/confused_file.h"
#include "sparsight/train/trainer.h"

namespace sparsight {

bool Trainer::tests_on_validation() const {
  return setup_.validation_loader && &setup_.validation_loader->data() == &setup_.test_loader->data();
}

// Evaluates the weights that the algorithm ended with, which no evaluation has seen: validation and monitor.
void Trainer::evaluate_result() {
  std::vector<Json> lines;
  for (const auto& [loader, split] :
       {std::pair{setup_.validation_loader.get(), "val"}, std::pair{setup_.monitor_loader.get(), "monitor"}})
    if (loader && !stopped()) {
      lines.push_back(
          metrics_line(evaluate_model(*loader, "result"), split, evaluated_weights(), progress_.step, epoch()));
      lines.back()["result"] = true;
    }
  if (stopped()) return;  // incomplete: it is repeated after resuming
  for (const Json& line : lines) metrics_->write(line);
}

// The number of the loader's images that some rank could not read.
int64_t Trainer::count_unreadable(const EndlessLoader& loader) const {
  const std::set<int64_t>& own = loader.unreadable_images();
  std::set<int64_t> all;
  for (const std::string& numbers : setup_.group->all_gather_bytes(Json(own).dump()))
    all.merge(Json::parse(numbers).get<std::set<int64_t>>());
  return std::ssize(all);
}

// Counts the images that loader.on_bad_image = "skip" left out, each once.
int64_t Trainer::note_unreadable() {
  int64_t training = 0;
  for (const EndlessLoader& loader : setup_.train_loaders) training += count_unreadable(loader);
  const auto of = [&](const std::unique_ptr<Loader>& loader) {  // each rank has evaluated others
    return loader ? setup_.group->counts(loader->unreadable()).all : 0;
  };
  const int64_t validation = of(setup_.validation_loader), monitor = of(setup_.monitor_loader),
                test = tests_on_validation() ? 0 : of(setup_.test_loader), all = training + validation + monitor + test;
  if (all == 0) return 0;
  const std::string text = cat(all, all == 1 ? " image" : " images", " could not be read and ",
                               all == 1 ? "was" : "were", " skipped: ", training, " of training, ",
                               validation + monitor, " of validation, ", test, " of test; the log names them");
  log_warning(text);
  metrics_->write({{"kind", "note"}, {"step", progress_.step}, {"text", text}});
  return all;
}

// The weights as trained, beside the averaged ones that are the result: "reported" says which. On the test split only,
// whose lines a resumed run writes again.
void Trainer::evaluate_raw() {
  apply_setting_schedules(*setup_.model, setup_.setting_schedules, progress_at(progress_.step));
  const Evaluation evaluation = evaluate_model(*setup_.test_loader, "test, raw weights");
  if (stopped()) return;
  Json line = metrics_line(evaluation, "test", "model", progress_.step, epoch());
  line["reported"] = false;
  if (tests_on_validation()) line["same_as"] = "val";
  metrics_->write(line);
}

void Trainer::final_evaluation(bool has_result) {
  const bool averaged = setup_.algorithm->weight_average() && !has_result;
  if (averaged) evaluate_raw();
  if (stopped()) return;
  load_best();
  apply_setting_schedules(*setup_.model, setup_.setting_schedules, progress_at(progress_.best_step));
  if (has_result) evaluate_result();
  if (stopped()) return;
  ConfusedImages confused(task_loss_named(setup_.train.task_loss, setup_.data));
  const Evaluation evaluation = evaluate_model(*setup_.test_loader, "test", {&confused});
  if (stopped()) return;
  Json line = metrics_line(evaluation, "test", evaluated_weights(), progress_.best_step, epoch());
  if (averaged) line["reported"] = true;
  if (tests_on_validation()) line.update({{"same_as", "val"}, {"missing_split", setup_.missing_split}});
  metrics_->write(line);
  if (setup_.group->leads() && !evaluation.multi_label)
    write_confused(folder_.confused(), confused, setup_.test_loader->data(), line);
  if (tests_on_validation()) {
    const bool validates_on_test = setup_.missing_split == "validation";
    const std::string text =
        cat("this run has no ", validates_on_test ? "validation" : "test",
            " split of its own: ", validates_on_test ? "\"val\" is the test split" : "\"test\" is the validation split",
            setup_.train.keep == "best" ? ", on which the best weights were chosen" : "");
    log_warning(text);
    metrics_->write({{"kind", "note"}, {"split", "test"}, {"step", progress_.step}, {"text", text}});
  }
  const int64_t unreadable = note_unreadable();
  const Cost cost = total(setup_.model->cost({}));
  Json done{{"kind", "done"},
            {"step", progress_.step},
            {"best_step", progress_.best_step},
            {"seconds", seconds()},
            {"peak_memory_mb", mebibytes(memory_.bytes())},
            {"parameters", cost.parameters},
            {"active_parameters", cost.active_parameters},
            {"multiply_adds", cost.multiply_adds}};
  if (unreadable > 0) done["unreadable"] = unreadable;
  metrics_->write(done);
  folder_.mark_done();
}

}  // namespace sparsight
