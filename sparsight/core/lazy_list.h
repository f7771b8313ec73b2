// A list whose elements are made on demand: a list of a billion takes no memory.
//
//   LazyList<std::string> names{"first"};
//   names.append(1'000'000'000, [](size_t i) { return "name " + std::to_string(i); });
//   names[7];  // "name 6"
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace sparsight {

template <class T>
class LazyList {
 public:
  using At = std::function<T(size_t)>;

  // Consecutive elements: at(0) .. at(count - 1).
  struct Block {
    size_t first = 0, count = 0;
    At at;
  };

  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = T;

    Iterator() = default;
    Iterator(const LazyList* list, size_t at) : list_(list), at_(at) {}
    T operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const LazyList* list_ = nullptr;
    size_t at_ = 0;
  };

  LazyList() = default;
  LazyList(std::initializer_list<T> all) : LazyList(std::vector<T>(all)) {}
  LazyList(std::vector<T> all) {
    for (T& element : all) push_back(std::move(element));
  }

  // Adds a block of at(0) .. at(count - 1).
  void append(size_t count, At at) {
    if (count == 0) return;
    blocks_.push_back({size_, count, std::move(at)});
    size_ += count;
  }
  // Adds a block of one element.
  void push_back(T element) {
    append(1, [element = std::move(element)](size_t) { return element; });
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // index: below size().
  T operator[](size_t index) const {
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), index,
                                        [](size_t wanted, const Block& block) { return wanted < block.first; });
    const Block& block = *std::prev(after);
    return block.at(index - block.first);
  }
  T front() const { return (*this)[0]; }
  T back() const { return (*this)[size_ - 1]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }
  const std::vector<Block>& blocks() const { return blocks_; }

  operator std::vector<T>() const { return std::vector<T>(begin(), end()); }

 private:
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace sparsight
