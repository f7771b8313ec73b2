// The interface of every dataset. get() is called from several loader threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/data/sample.h"

namespace sparsight {

struct DataInfo {
  std::string name;                             // "glyphs"
  std::vector<std::string> classes = {};        // K names, in label order
  std::vector<std::string> domains = {};        // names, in domain order; at least one
  std::vector<std::string> super_classes = {};  // names, or empty
  std::vector<int64_t> super_class_of = {};     // [K] index into super_classes, or empty
  int64_t channels = 3;                         // of every image
  int64_t height = 0, width = 0;                // of every image, or 0 if they vary
  std::vector<std::string> attributes = {};     // names of Sample::attributes, or empty
  std::vector<int64_t> cell_grid = {};          // [rows, columns] of the grid whose cells, numbered row by row, are the
                                                // values of attributes named "cell" or "..._cell"; or empty
  bool multi_label = false;                     // images may have several classes (Sample::labels)
};

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual const DataInfo& info() const = 0;
  virtual int64_t size() const = 0;
  virtual Sample get(int64_t index) const = 0;  // 0 <= index < size(); raises Error for an unreadable image
  // Raises Error for an image that is cheaply seen to be unreadable: its file is missing, empty, cut off or no image.
  virtual void check(int64_t) const {}
  virtual int64_t label(int64_t index) const = 0;  // without decoding the image
  virtual int64_t domain(int64_t) const { return 0; }
  // All classes of the image, ascending; of multi-label data more than label(), the first one.
  virtual std::vector<int64_t> labels(int64_t index) const { return {label(index)}; }
  // Which large file has the image, and images around it: cheap to read one after the other. -1: it is on its own.
  virtual int64_t shard(int64_t) const { return -1; }
  // The file whose bytes are the encoded image; "" if there is none.
  virtual std::string file(int64_t) const { return ""; }
};

using DataSetPtr = std::shared_ptr<const DataSet>;

// Raises UsageError for multi-label data, which `what` ("sampling = \"weighted\"") cannot use.
void need_single_labels(const DataInfo& info, const std::string& what);

// The arguments of every dataset in addition to its own options.
struct DataContext {
  uint64_t seed = 0;  // of the run; determines the validation split
};

// The splits of a dataset, none of them empty. If validation or test is missing, the other is used for both.
struct DataSplits {
  DataSetPtr train, validation, test;
  DataSetPtr monitor = {};   // further images, evaluated with the validation split for the log alone; or null
  std::string missing = {};  // "validation" or "test" if the dataset lacks that split and the other one serves as both
};

}  // namespace sparsight
