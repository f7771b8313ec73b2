// The datasets of images that DomainBed evaluates on: their environments in order, and how many images they have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

// What DomainBed's tables call a dataset and its environments.
struct DomainTitles {
  std::string set;                             // "PACS"
  std::vector<std::string> environments = {};  // {}: as their folders
};

struct PublishedDomains {
  std::string name;  // "pacs"
  DomainTitles titles;
  std::string folder;                // its usual root, which has domain/class/image
  std::vector<std::string> domains;  // in byte order, which is that of the environments
  int64_t classes = 0;
  std::vector<int64_t> images;   // of each domain; empty: not known, not checked
  std::string obtain;            // where its authors publish it
  int64_t eval_every = 300;      // DomainBed's updates between evaluations
  std::string batch_range = {};  // of random search, where it is not that of other photographs
};

const std::vector<PublishedDomains>& published_domains();

// Raises Error where the files differ from the published ones: a missing or further domain, another number of classes,
// a class that a domain lacks, another number of images. all: images with the domains of `expected`.
void check_published(const DataSet& all, const PublishedDomains& expected, const std::string& root);

}  // namespace sparsight
