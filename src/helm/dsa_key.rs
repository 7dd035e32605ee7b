//! DSA keys, which only templates of another age ask for.
//!
//! The parameters are fixed: a prime of 2048 bits and a subgroup of 256 bits, made with
//! OpenSSL for this program. Only the key itself is drawn, as the standard allows.

use num_bigint::{BigInt, BigUint};

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

/// Returns a new key in DER, as OpenSSL's old form has it: version, prime, order,
/// generator, public and private number. `random` draws bytes.
pub(super) fn key(random: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
    let (prime, order, generator) = (number(PRIME), number(ORDER), number(GENERATOR));
    let secret = loop {
        let mut bytes = [0; 32];
        random(&mut bytes);
        let drawn = BigUint::from_bytes_be(&bytes);
        if drawn != BigUint::ZERO && drawn < order {
            break drawn;
        }
    };
    let public = generator.modpow(&secret, &prime);
    let mut body = vec![2, 1, 0];
    for number in [&prime, &order, &generator, &public, &secret] {
        body.extend(element(2, &BigInt::from(number.clone()).to_signed_bytes_be()));
    }
    element(0x30, &body)
}

fn number(hexadecimal: &str) -> BigUint {
    BigUint::parse_bytes(hexadecimal.as_bytes(), 16).unwrap_or_default()
}

/// Returns a DER element. The length of its content has at most two bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_of_the_order() {
        let (prime, order, generator) = (number(PRIME), number(ORDER), number(GENERATOR));
        assert_eq!((prime.bits(), order.bits()), (2048, 256));
        assert_eq!(generator.modpow(&order, &prime), BigUint::from(1_u8));
    }

    #[test]
    fn a_key_is_a_sequence_of_six_numbers() {
        let der = key(&mut |bytes| bytes.fill(7));
        assert_eq!(der.get(..2), Some([0x30, 0x82].as_slice()));
        assert!(der.len() > 800);
    }
}
