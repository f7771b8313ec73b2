// JPEG files for benchmarks, encoded in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// 4,096 copies of one JPEG of quality 90 with soft shapes and a little grain, so that it has about as many bytes per
// pixel as a photograph; decoded again for each sample.
class JpegSet : public DataSet {
 public:
  JpegSet(int height, int width);
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return 4096; }
  int64_t label(int64_t index) const override { return index % 10; }
  Sample get(int64_t index) const override;

 private:
  std::vector<uint8_t> bytes_;
  DataInfo info_;
};

}  // namespace sparsight
