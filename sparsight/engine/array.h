// An array that is filled again in every run of a program, and allocates only where it grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sparsight::engine {

template <class T>
class Array {
 public:
  // Sets the size; the elements are then unspecified, unless they were there before.
  T* resize(int64_t size) {
    if (size > 0 && size > capacity_) {
      auto more = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(size));
      std::copy_n(data(), size_, more.get());
      data_ = std::move(more);
      capacity_ = size;
    }
    size_ = size;
    return data();
  }
  void clear() { size_ = 0; }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](int64_t i) { return data_[static_cast<size_t>(i)]; }
  const T& operator[](int64_t i) const { return data_[static_cast<size_t>(i)]; }
  std::span<const T> all() const { return {data(), static_cast<size_t>(size_)}; }

 private:
  std::unique_ptr<T[]> data_;
  int64_t size_ = 0, capacity_ = 0;
};

}  // namespace sparsight::engine
