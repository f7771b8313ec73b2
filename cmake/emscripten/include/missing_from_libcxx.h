// What this library calls of the standard library that libc++ 13 lacks. The toolchain of WebAssembly
// (wasm32-emscripten.cmake) includes it before every source file; with a later libc++ it is empty.
#pragma once

#include <version>
#if _LIBCPP_VERSION < 14000

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace std {  // NOLINT(cert-dcl58-cpp): as the library will have them

template <class To, class From>
constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To> && is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

template <class Array>
unique_ptr<Array> make_unique_for_overwrite(size_t size) {
  return unique_ptr<Array>(new remove_extent_t<Array>[size]);
}

}  // namespace std

namespace std::ranges {  // NOLINT(cert-dcl58-cpp)

template <class Range, class Test, class Projection = std::identity>
constexpr auto find_if(Range&& range, Test test, Projection projection = {}) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](auto&& each) -> bool { return std::invoke(test, std::invoke(projection, each)); });
}

template <class Range, class Value, class Projection = std::identity>
constexpr auto find(Range&& range, const Value& value, Projection projection = {}) {
  return ranges::find_if(
      range, [&](auto&& each) { return each == value; }, projection);
}

template <class Range, class Test>
constexpr auto count_if(Range&& range, Test test) {
  return std::count_if(std::begin(range), std::end(range),
                       [&](auto&& each) -> bool { return std::invoke(test, each); });
}

template <class Range, class Value>
constexpr auto count(Range&& range, const Value& value) {
  return std::count(std::begin(range), std::end(range), value);
}

template <class Range, class Test>
constexpr bool any_of(Range&& range, Test test) {
  return ranges::find_if(range, test) != std::end(range);
}

template <class Range, class Test>
constexpr bool none_of(Range&& range, Test test) {
  return !ranges::any_of(range, test);
}

template <class Range, class Test>
constexpr bool all_of(Range&& range, Test test) {
  return ranges::none_of(range, [&](auto&& each) { return !std::invoke(test, each); });
}

template <class Range, class Out, class Test>
constexpr void copy_if(Range&& range, Out out, Test test) {
  std::copy_if(std::begin(range), std::end(range), out, [&](auto&& each) -> bool { return std::invoke(test, each); });
}

template <class Range, class Value>
constexpr void fill(Range&& range, const Value& value) {
  std::fill(std::begin(range), std::end(range), value);
}

template <class Range, class Function>
constexpr void for_each(Range&& range, Function function) {
  std::for_each(std::begin(range), std::end(range), function);
}

template <class Range, class Out, class Function>
constexpr void transform(Range&& range, Out out, Function function) {
  std::transform(std::begin(range), std::end(range), out, function);
}

// What orders two elements by a comparison of what the projection says of them.
template <class Compare, class Projection>
constexpr auto by(Compare& compare, Projection& projection) {
  return [&](auto&& a, auto&& b) -> bool {
    return std::invoke(compare, std::invoke(projection, a), std::invoke(projection, b));
  };
}

template <class Range, class Compare = std::less<>, class Projection = std::identity>
constexpr void sort(Range&& range, Compare compare = {}, Projection projection = {}) {
  std::sort(std::begin(range), std::end(range), ranges::by(compare, projection));
}

template <class Range, class Compare = std::less<>, class Projection = std::identity>
constexpr void stable_sort(Range&& range, Compare compare = {}, Projection projection = {}) {
  std::stable_sort(std::begin(range), std::end(range), ranges::by(compare, projection));
}

template <class Range>
constexpr auto max_element(Range&& range) {
  return std::max_element(std::begin(range), std::end(range));
}

template <class Range>
constexpr auto minmax(Range&& range) {
  const auto [least, greatest] = std::minmax_element(std::begin(range), std::end(range));
  return std::pair(*least, *greatest);
}

}  // namespace std::ranges

#endif
