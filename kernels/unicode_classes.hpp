// Classes of characters, and their lower case, as Python's str has them.
#pragma once

#include <nanobind/nanobind.h>

#ifdef Py_LIMITED_API
#include <atomic>
#include <cstdint>
#include <memory>

#include "gil.hpp"
#endif

namespace chordal::unicode {

#ifndef Py_LIMITED_API

inline bool alpha(Py_UCS4 c) { return Py_UNICODE_ISALPHA(c); }
inline bool decimal(Py_UCS4 c) { return Py_UNICODE_ISDECIMAL(c); }
inline bool lower(Py_UCS4 c) { return Py_UNICODE_ISLOWER(c); }
inline bool upper_or_title(Py_UCS4 c) { return Py_UNICODE_ISUPPER(c) || Py_UNICODE_ISTITLE(c); }
inline bool space(Py_UCS4 c) { return Py_UNICODE_ISSPACE(c); }
inline bool alnum(Py_UCS4 c) { return Py_UNICODE_ISALNUM(c); }
inline Py_UCS4 to_lower(Py_UCS4 c) { return Py_UNICODE_TOLOWER(c); }

#else

// The stable ABI has none of these. Methods of str are asked about 256 characters together, when the
// first of them is met; the answers are kept.
struct Page {
    std::uint8_t classes[256];
    Py_UCS4 lower[256];
};
inline constexpr Py_UCS4 kEnd = 0x110000;
inline std::atomic<const Page*> pages[kEnd / 256];

inline const Page* ask(Py_UCS4 number) {
    namespace nb = nanobind;
    const GilHeld gil;  // kernels go without
    auto page = std::make_unique<Page>();
    for (Py_UCS4 k = 0; k < 256; ++k) {
        const auto c = nb::steal(PyUnicode_FromOrdinal(static_cast<int>(256 * number + k)));
        if (!c.is_valid()) throw nb::python_error();
        std::uint8_t bit = 1, classes = 0;
        for (const char* method :
             {"isalpha", "isdecimal", "islower", "istitle", "isspace", "isalnum"}) {
            if (nb::cast<bool>(c.attr(method)())) classes |= bit;
            bit = static_cast<std::uint8_t>(bit << 1);
        }
        page->classes[k] = classes;
        page->lower[k] = PyUnicode_ReadChar(nb::object(c.attr("lower")()).ptr(), 0);
    }
    const Page* known = nullptr;  // another thread may have been faster
    if (pages[number].compare_exchange_strong(known, page.get())) known = page.release();
    return known;
}
inline const Page* page_of(Py_UCS4 c) {
    const Page* page = pages[c / 256].load(std::memory_order_acquire);
    return page ? page : ask(c / 256);
}
inline bool has(Py_UCS4 c, int bit) {
    return c < kEnd && (page_of(c)->classes[c % 256] >> bit & 1) != 0;
}

inline bool alpha(Py_UCS4 c) { return has(c, 0); }
inline bool decimal(Py_UCS4 c) { return has(c, 1); }
inline bool lower(Py_UCS4 c) { return has(c, 2); }
inline bool upper_or_title(Py_UCS4 c) { return has(c, 3); }  // what istitle says of one character
inline bool space(Py_UCS4 c) { return has(c, 4); }
inline bool alnum(Py_UCS4 c) { return has(c, 5); }
inline Py_UCS4 to_lower(Py_UCS4 c) { return c < kEnd ? page_of(c)->lower[c % 256] : c; }

#endif

}  // namespace chordal::unicode
