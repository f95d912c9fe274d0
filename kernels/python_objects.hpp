// Python's strings, lists and dicts, as each kind of build may read them.
//
// A build for one version of Python reads them in place. The stable ABI (Py_LIMITED_API) hides their
// memory, and functions are called instead. In a free-threaded build another thread may change a list
// or dict that is being read, so that a copy is read. References to items are borrowed: from an object
// that the caller holds, and that nothing changes meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "utf8.hpp"

namespace chordal {

namespace nb = nanobind;

#ifdef Py_GIL_DISABLED
inline constexpr bool kItemsMayChange = true;  // while they are read
#else
inline constexpr bool kItemsMayChange = false;
#endif

// The items of an iterable as a list or tuple; on an error not valid, with Python's error set.
inline nb::object items_of(nb::handle x) {
    return nb::steal(kItemsMayChange ? PySequence_Tuple(x.ptr()) : PySequence_Fast(x.ptr(), ""));
}

#ifndef Py_LIMITED_API

inline Py_ssize_t item_count(nb::handle items) { return PySequence_Fast_GET_SIZE(items.ptr()); }
inline PyObject* item_at(nb::handle items, Py_ssize_t k) {
    return PySequence_Fast_GET_ITEM(items.ptr(), k);
}
inline PyObject* tuple_item(nb::handle tuple, Py_ssize_t k) {
    return PyTuple_GET_ITEM(tuple.ptr(), k);
}
// Fills a place of a new list; the reference is taken over.
inline void fill_list(nb::handle list, Py_ssize_t k, PyObject* item) {
    PyList_SET_ITEM(list.ptr(), k, item);
}

// Appends a str as UTF-8, each surrogate as three bytes.
inline void append_text(PyObject* s, std::string& out) {
    const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(s));
    const void* data = PyUnicode_DATA(s);
    if (PyUnicode_IS_ASCII(s)) {
        out.append(static_cast<const char*>(data), length);
        return;
    }
    const auto kind = PyUnicode_KIND(s);
    for (std::size_t i = 0; i < length; ++i)
        append_utf8(PyUnicode_READ(kind, data, static_cast<Py_ssize_t>(i)), out);
}

// The name of an object's type, for messages.
inline std::string type_of(nb::handle x) { return Py_TYPE(x.ptr())->tp_name; }

#else

inline Py_ssize_t item_count(nb::handle items) {
    return PyList_Check(items.ptr()) ? PyList_Size(items.ptr()) : PyTuple_Size(items.ptr());
}
inline PyObject* item_at(nb::handle items, Py_ssize_t k) {
    return PyList_Check(items.ptr()) ? PyList_GetItem(items.ptr(), k)
                                     : PyTuple_GetItem(items.ptr(), k);
}
inline PyObject* tuple_item(nb::handle tuple, Py_ssize_t k) {
    return PyTuple_GetItem(tuple.ptr(), k);
}
inline void fill_list(nb::handle list, Py_ssize_t k, PyObject* item) {
    PyList_SetItem(list.ptr(), k, item);
}

// A str that is not ASCII keeps its UTF-8 for as long as it lives.
inline void append_text(PyObject* s, std::string& out) {
    Py_ssize_t length = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(s, &length)) {
        out.append(text, static_cast<std::size_t>(length));
        return;
    }
    PyErr_Clear();  // it has surrogates
    const auto bytes =
        nb::steal<nb::bytes>(PyUnicode_AsEncodedString(s, "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    out.append(bytes.c_str(), bytes.size());
}

// As tp_name has it: types that are compiled in name their module, but for Python's own.
inline std::string type_of(nb::handle x) {
    const nb::handle type = x.type();
    std::string name = nb::cast<std::string>(type.attr("__name__"));
    const auto flags = PyType_GetFlags(reinterpret_cast<PyTypeObject*>(type.ptr()));
    if (flags & Py_TPFLAGS_HEAPTYPE) return name;
    const auto module = nb::cast<std::string>(type.attr("__module__"));
    return module == "builtins" ? name : module + "." + name;
}

#endif

}  // namespace chordal
