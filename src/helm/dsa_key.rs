//! DSA keys, which only templates of another age ask for.
//!
//! The parameters are fixed: a prime of 2048 bits and a subgroup of 256 bits, made with
//! OpenSSL for this program. Only the key itself is drawn, as the standard allows.

/// The prime, in hexadecimal.
const PRIME: &str = "\
    d83c0fa894d80cb59978acce926f76368e10e51a0159acff59a10dafe73ac7c52f150a8dc877c0a919c1e9832f52742a\
    292f4ef0efec6567b0d0c037c0c602a7ac7cb5fe1b5ddafe53e3080e431f9d177dfe1337b5aac39ef457fb199b388d33\
    d857e3ec189d3180854af600ead21e22a656ba0594e46e3c081c4211b034c4e99fa7356a920964b20875f0a1f5bf9042\
    73ad1bb3a081a7ed10bb8e70eb6efb0e97f57009d8f898f5806287fe004b6fe92a65e068c32bb656ba0afb6edee44152\
    51e96cd9b547b60a86c121ec50c68b7f617fc31490633686f76e5f4132a5c30f52546f7cacc974103a7ff85d08f7b385\
    747af5b649ac581f23685d73db64e63b";

/// The order of the subgroup.
const ORDER: &str = "\
    f62e2fd959bcc8b5f8f4714fb86ec7d169a3cee22eacc71631673214c8df4b13";

/// The generator of the subgroup.
const GENERATOR: &str = "\
    325d9f90a8887fbd4798dc1958fe15786a625882244e3516b3a6b1adaf21a09af5244b6e62c7ba453735021f890a6716\
    29bea846d9cf73456f3a58b3fec59545d0e01b7bb8a06a989a3c80e91c10a4145190039ca254867d43c1e4a41cd666b1\
    6117ad28b1751cdab2822013d6b42db06f1def93ff5654a8c1abddcd38ded88ed0de8494592f5356aed50fdc4274fa8f\
    1578557f8343a6a9dc00351e96931737a995c828bd7093dd918baf10ff33405bbd61260ca1ccd401590311f89159c2f7\
    0bdb91bfab446e93e9ec2c4373a61d95f93fa7d783ffd4c52a9c2c25fda15f00ea4d6d1b8cf3b4a42aa0944e08072600\
    9c0d686a45e6e51d1e725fbceda242c5";

/// A number of any size, the lowest 32 bits first, without zeros at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number(Vec<u32>);

/// Returns a new key in DER, as OpenSSL's old form has it: version, prime, order,
/// generator, public and private number. `random` draws bytes.
pub(super) fn key(random: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
    let (prime, order, generator) = (Number::hex(PRIME), Number::hex(ORDER), Number::hex(GENERATOR));
    let secret = loop {
        let mut bytes = [0; 32];
        random(&mut bytes);
        let drawn = Number::bytes(&bytes);
        if !drawn.0.is_empty() && drawn.is_less(&order) {
            break drawn;
        }
    };
    let public = generator.power(&secret, &prime);
    let mut body = vec![2, 1, 0];
    for number in [&prime, &order, &generator, &public, &secret] {
        body.extend(element(2, &number.signed_bytes()));
    }
    element(0x30, &body)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut der = vec![tag];
    match (high, low) {
        (0, low) if low < 0x80 => der.push(low),
        (0, low) => der.extend([0x81, low]),
        (high, low) => der.extend([0x82, high, low]),
    }
    der.extend_from_slice(content);
    der
}

impl Number {
    fn hex(text: &str) -> Self {
        let bytes: Vec<u8> = text
            .as_bytes()
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | value_of(*digit)))
            .collect();
        Self::bytes(&bytes)
    }

    fn bytes(bytes: &[u8]) -> Self {
        let limbs =
            bytes.rchunks(4).map(|limb| limb.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte)));
        Self(limbs.collect()).trimmed()
    }

    /// Returns the bytes of DER: the highest first, with a zero before a set top bit.
    fn signed_bytes(&self) -> Vec<u8> {
        let bytes: Vec<u8> = self.0.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let mut signed: Vec<u8> = bytes.into_iter().skip(start).collect();
        if signed.first().is_none_or(|first| first & 0x80 != 0) {
            signed.insert(0, 0);
        }
        signed
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn is_less(&self, other: &Self) -> bool {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_lt()
    }

    fn bits(&self) -> impl DoubleEndedIterator<Item = bool> + '_ {
        self.0.iter().flat_map(|limb| (0..32).map(move |bit| (limb >> bit) & 1 == 1))
    }

    /// Returns twice this number, and one more if `bit` is set.
    fn shifted(&self, bit: bool) -> Self {
        let mut carry = u32::from(bit);
        let mut limbs: Vec<u32> = Vec::with_capacity(self.0.len() + 1);
        for limb in &self.0 {
            limbs.push((limb << 1) | carry);
            carry = limb >> 31;
        }
        limbs.push(carry);
        Self(limbs).trimmed()
    }

    fn plus(&self, other: &Self) -> Self {
        let mut carry = 0_u64;
        let mut limbs = Vec::new();
        for index in 0..self.0.len().max(other.0.len()) {
            let limb = |number: &Self| u64::from(number.0.get(index).copied().unwrap_or(0));
            let sum = limb(self) + limb(other) + carry;
            limbs.push(low(sum));
            carry = sum >> 32;
        }
        limbs.push(low(carry));
        Self(limbs).trimmed()
    }

    /// Returns this number less `other`, which is not greater.
    fn minus(&self, other: &Self) -> Self {
        let mut borrow = 0_i64;
        let mut limbs = Vec::new();
        for (index, limb) in self.0.iter().enumerate() {
            let difference = i64::from(*limb) - i64::from(other.0.get(index).copied().unwrap_or(0)) + borrow;
            borrow = difference >> 32;
            limbs.push(low(difference.cast_unsigned()));
        }
        Self(limbs).trimmed()
    }

    fn reduced(self, modulus: &Self) -> Self {
        if self.is_less(modulus) { self } else { self.minus(modulus) }
    }

    /// Returns the product modulo `modulus`; both factors are less than it.
    fn times(&self, other: &Self, modulus: &Self) -> Self {
        let mut product = Self(Vec::new());
        for bit in other.bits().rev() {
            product = product.shifted(false).reduced(modulus);
            if bit {
                product = product.plus(self).reduced(modulus);
            }
        }
        product
    }

    fn power(&self, exponent: &Self, modulus: &Self) -> Self {
        let mut power = Self(vec![1]);
        for bit in exponent.bits().rev() {
            power = power.times(&power, modulus);
            if bit {
                power = power.times(self, modulus);
            }
        }
        power
    }
}

fn value_of(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "only the low half is wanted")]
fn low(value: u64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_right() {
        let number = |value: u32| Number(vec![value]).trimmed();
        assert_eq!(number(3).power(&number(200), &number(1_000_007)), number(pow(3, 200, 1_000_007)));
    }

    fn pow(base: u64, exponent: u32, modulus: u64) -> u32 {
        u32::try_from((0..exponent).fold(1, |power, _| power * base % modulus)).unwrap()
    }

    #[test]
    fn a_key_is_a_sequence_of_six_numbers() {
        let der = key(&mut |bytes| bytes.fill(7));
        assert_eq!(der.get(..2), Some([0x30, 0x82].as_slice()));
        assert!(der.len() > 800);
    }
}
