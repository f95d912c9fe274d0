// libFuzzer on what kernels do with text: patterns of templates against a plain matcher, shapes, and what text must be.
//
// The first byte says how long the pattern is; the rest is the text. The plain matcher tries every choice
// of * and ? in the order of preference, so it may take exponential time, and only short inputs are compared.
#include <cstdint>
#include <cstdlib>

#include "pattern.hpp"
#include "text_check.hpp"

namespace chordal {
// Nobody presses Ctrl-C here.
bool interrupted() { return false; }
bool out_of_time() { return false; }

namespace {

struct Plain {
    struct Element {
        char kind;
        Py_UCS4 code;
        char count;
    };
    bool anchored = false, to_the_end = false;
    std::vector<Element> elements;
    std::size_t steps = 0;

    Plain(const char* p, const char* end) {
        if (p < end && *p == '^') anchored = true, ++p;
        while (p < end) {
            if (*p == '$' && p + 1 == end) {
                to_the_end = true;
                break;
            }
            Element e{'c', 0, '1'};
            if (*p == '.') e.kind = '.';
            if (*p == '\\' && p + 1 < end) {
                ++p;
                if (*p && std::strchr("adlpsuwADLPSUW", *p)) e.kind = *p;
            }
            e.code = static_cast<unsigned char>(*p++);
            if (p < end && (*p == '*' || *p == '?')) e.count = *p++;
            elements.push_back(e);
        }
    }
    static bool is(const Element& e, Py_UCS4 c) {
        const bool upper = e.kind >= 'A' && e.kind <= 'Z';
        switch (upper ? e.kind + ('a' - 'A') : e.kind) {
            case '.': return true;
            case 'a': return Bytes::alpha(c) != upper;
            case 'd': return Bytes::digit(c) != upper;
            case 'l': return Bytes::lower(c) != upper;
            case 'p': return Bytes::punctuation(c) != upper;
            case 's': return Bytes::space(c) != upper;
            case 'u': return Bytes::upper(c) != upper;
            case 'w': return Bytes::alnum(c) != upper;
            default: return e.code == c;
        }
    }
    // The end of the preferred match of elements k … at p, or null.
    const char* match(std::size_t k, const char* p, const char* end) {
        if (++steps > 100'000) return nullptr;
        if (k == elements.size()) return !to_the_end || p == end ? p : nullptr;
        const Element& e = elements[k];
        const bool fits = p < end && is(e, static_cast<unsigned char>(*p));
        if (e.count == '1') return fits ? match(k + 1, p + 1, end) : nullptr;
        if (e.count == '?') {
            const char* found = fits ? match(k + 1, p + 1, end) : nullptr;
            return found ? found : match(k + 1, p, end);
        }
        const char* found = match(k + 1, p, end);  // as few as possible
        return found || !fits ? found : match(k, p + 1, end);
    }
};

void compare(const char* pattern, const char* split, const char* end) {
    const char *first = nullptr, *last = nullptr;
    const bool found = Pattern<Bytes>(pattern, split).find(split, end, first, last);
    if (found && !(split <= first && first <= last && last <= end)) std::abort();
    Plain plain(pattern, split);
    for (const char* p = split;; ++p) {
        const char* expected = plain.match(0, p, end);
        if (plain.steps > 100'000) return;
        if (expected) {
            if (!found || first != p || last != expected) std::abort();
            return;
        }
        if (p == end || plain.anchored) break;
    }
    if (found) std::abort();
}

}  // namespace
}  // namespace chordal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string copy(reinterpret_cast<const char*>(data), size);  // its end is watched
    const char *begin = copy.data() + 1, *end = copy.data() + size;
    const char* split = begin + std::min<std::size_t>(data[0] % 32, size - 1);
    chordal::compare(begin, split, end);
    std::string shape;
    chordal::append_shape<chordal::Bytes>(split, end, shape);
    if (shape.size() > static_cast<std::size_t>(end - split)) std::abort();
    const std::size_t bad = chordal::find_bad_byte({begin, static_cast<std::size_t>(end - begin)});
    if (bad != std::string_view::npos && bad >= static_cast<std::size_t>(end - begin)) std::abort();
    return 0;
}
