// `sparsight weights`
#pragma once

#include <cstdint>
#include <string>

namespace sparsight::cli {

struct WeightsShardArguments {
  std::string weights, out;  // run folder, checkpoint or file of weights; folder to make
  int64_t files = 2;
};

struct WeightsMergeArguments {
  std::string folder, out;  // folder or its index; file to write
  bool overwrite = false;
};

struct WeightsPublishArguments {
  std::string run, checkpoint, out, name, license;
};

struct WeightsConvertArguments {
  std::string weights, library, out;  // run folder, checkpoint or file of weights; file to write
  bool overwrite = false;
};

void run_weights_convert(const WeightsConvertArguments& arguments);
void run_weights_publish(const WeightsPublishArguments& arguments);
void run_weights_shard(const WeightsShardArguments& arguments);
void run_weights_merge(const WeightsMergeArguments& arguments);

}  // namespace sparsight::cli
