// What every binding shares: array types, how a file joins the module, and the Ctrl-C check.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace chordal {

namespace nb = nanobind;

// Read-only and writable contiguous arrays, of exactly this type: nothing is converted silently.
template <class T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// True after Ctrl-C; Python's error is then set, and the binding throws nb::python_error.
inline bool interrupted() {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

// Moves a vector into a NumPy array without copying it.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T>&& data) {
    auto* kept = new std::vector<T>(std::move(data));
    kept->shrink_to_fit();  // it may live long
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

// A kernel file's own functions: `static const Binding binding([](nb::module_& m) { … });` adds
// them to the module, and nothing else lists the file.
class Binding {
public:
    explicit Binding(void (*bind)(nb::module_&));
};

}  // namespace chordal
