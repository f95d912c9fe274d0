// What text must be: UTF-8, without NUL, and with carriage returns at the ends of lines only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace chordal {

constexpr std::uint64_t kOnes = 0x0101010101010101ull, kHigh = 0x8080808080808080ull;

// Which of eight bytes are zero, by their highest bits; what lies above the lowest of them may be wrong.
inline std::uint64_t zeros(std::uint64_t x) { return (x - kOnes) & ~x & kHigh; }

// Length of the UTF-8 character that begins at p, or 0 if none does. Overlong forms, surrogates and
// what lies above U+10FFFF are none.
inline std::size_t character_length(const unsigned char* p, const unsigned char* end) {
    const unsigned char lead = *p;
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || static_cast<std::size_t>(end - p) < length) return 0;
    const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) return 0;
    for (std::size_t k = 2; k < length; ++k)
        if ((p[k] & 0xC0) != 0x80) return 0;
    return length;
}

// The first byte that text must not hold: NUL, a CR that ends no line, or what is not UTF-8; npos if
// there is none. Eight bytes at once where nothing can be wrong with them.
inline std::size_t find_bad_byte(std::string_view text) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(text.data());
    const auto *p = begin, *const end = begin + text.size();
    while (p < end) {
        if (end - p >= 8) {
            std::uint64_t word;
            std::memcpy(&word, p, 8);
            if ((word & kHigh) == 0 && zeros(word) == 0 && zeros(word ^ kOnes * '\r') == 0) {
                p += 8;
                continue;
            }
        }
        const std::size_t length = character_length(p, end);
        const bool stray = *p == '\r' && end - p > 1 && p[1] != '\n';
        if (length == 0 || *p == 0 || stray) return static_cast<std::size_t>(p - begin);
        p += length;
    }
    return text.npos;
}

}  // namespace chordal
