// `sparsight data`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::cli {

// A dataset on the command line: a name or a path, and settings of the [data] section.
struct SetArguments {
  std::string what;
  std::vector<std::string> overrides;
};

struct DataMakeArguments {
  SetArguments set{"glyphs", {}};
  std::string folder, layout = "class";
};

struct DataShardArguments {
  SetArguments set;
  std::string folder, size = "1000", order = "shuffle";
  std::vector<std::string> splits;
  uint64_t seed = 0;
};

struct DataFetchArguments {
  std::string name, to, mirror, from;
};

void run_data_list();
void run_data_inspect(const SetArguments& arguments);
void run_data_verify(const SetArguments& arguments);
void run_data_make(const DataMakeArguments& arguments);
void run_data_shard(const DataShardArguments& arguments);
void run_data_fetch(const DataFetchArguments& arguments);
void run_data_where(const std::string& name);  // "": of every dataset

}  // namespace sparsight::cli
