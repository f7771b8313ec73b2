#include "sparsight/data/check_images.h"

#include "sparsight/core/error.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/loader.h"
#include "sparsight/data/look_at_all.h"

namespace sparsight {

void check_images(const DataSplits& splits) {
  const std::vector<DataSetPtr> parts = distinct_parts({splits.train, splits.validation, splits.test, splits.monitor});
  int64_t images = 0, before = 0, bad = 0;
  for (const DataSetPtr& part : parts) images += part->size();
  Progress progress("check images", images, "images");
  std::string first;
  for (const DataSetPtr& part : parts) {
    const Looks looks = look_at_all(
        part->size(), [&](int64_t i) { part->check(i); },
        [&](int64_t done, int64_t) { progress.update(before + done); });
    if (looks.done < part->size()) fail("interrupted");
    before += looks.done;
    bad += std::ssize(looks.problems);
    if (first.empty() && !looks.problems.empty()) first = looks.problems.begin()->second;
  }
  if (bad == 0) return;
  fail(first, bad > 1 ? cat(" (the first of ", bad, " images that cannot be read)") : "", kBadImageAdvice);
}

}  // namespace sparsight
