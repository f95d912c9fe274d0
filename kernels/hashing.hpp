// Hashes of names: a keyed one for tables in memory, and one without a key for tables in files.
//
// Words come from anywhere, and some are made to collide. The key is drawn when the module is loaded, so
// that nobody can know which words share a slot. A file's table is found by every process: whoever reads
// one looks how long its runs are, and makes a table of its own where they are too long.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

#if defined(_MSC_VER) && !defined(__SIZEOF_INT128__)
#include <intrin.h>
#endif

namespace chordal {

// The last 1 to 7 bytes of a text as a word, the rest zero; without a call, which memcpy of a size
// that is not known would be.
inline std::uint64_t last_word(const char* text, std::size_t size) {
    std::uint64_t word = 0;
    if constexpr (std::endian::native != std::endian::little) {
        std::memcpy(&word, text, size);
    } else if (size >= 4) {
        std::uint32_t first, last;  // they may overlap
        std::memcpy(&first, text, 4);
        std::memcpy(&last, text + size - 4, 4);
        word = first | std::uint64_t{last} << 8 * (size - 4);
    } else {
        for (const std::size_t k : {std::size_t{0}, size / 2, size - 1})
            word |= std::uint64_t{static_cast<unsigned char>(text[k])} << 8 * k;
    }
    return word;
}

// Of tables in files. Multiply and fold, eight bytes at a time.
inline std::uint64_t file_hash(const char* text, std::size_t size) {
    constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ull;
    std::uint64_t h = size * kFactor, word;
    for (; size >= 8; text += 8, size -= 8) {
        std::memcpy(&word, text, 8);
        h = (h ^ word) * kFactor;
        h ^= h >> 29;
    }
    if (size > 0) {
        h = (h ^ last_word(text, size)) * kFactor;
        h ^= h >> 29;
    }
    h *= kFactor;
    return h ^ (h >> 32);
}

// Both halves of the product, folded.
inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
#ifdef __SIZEOF_INT128__
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#else
    std::uint64_t high;
    const std::uint64_t low = _umul128(a, b, &high);
    return low ^ high;
#endif
}

struct HashKey {
    std::uint64_t of_words, of_state, of_end;

    static HashKey drawn() {
        std::random_device source;
        const auto word = [&] { return std::uint64_t{source()} << 32 | source(); };
        return {word(), word() | 1, word() | 1};
    }
};
inline const HashKey hash_key = HashKey::drawn();

// Of tables in memory. Each word is multiplied by a state that nobody outside knows (as wyhash does), so
// that no difference between two texts cancels for every key.
inline std::uint64_t keyed_hash(const char* text, std::size_t size) {
    std::uint64_t h = hash_key.of_state ^ size, word;
    for (; size >= 8; text += 8, size -= 8) {
        std::memcpy(&word, text, 8);
        h = folded_product(word ^ hash_key.of_words, h ^ hash_key.of_state);
    }
    if (size > 0) h = folded_product(last_word(text, size) ^ hash_key.of_words, h ^ hash_key.of_state);
    return folded_product(h ^ hash_key.of_words, hash_key.of_end);
}

struct KeyedHash {
    std::size_t operator()(std::string_view text) const {
        return static_cast<std::size_t>(keyed_hash(text.data(), text.size()));
    }
};

}  // namespace chordal
