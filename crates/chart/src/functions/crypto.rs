//! Passwords and encryption.

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::args::{Answer, STRING, bytes, int, string};
use super::encodings::base64_decoded;
use crate::value::{CallError, Context, Function, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("bcrypt", &[STRING], STRING, |context, args| Ok(bcrypted(context, bytes(args, 0))?.into())),
    Function::new("decryptAES", &[STRING, STRING], STRING, decrypt),
    Function::new(
        "derivePassword",
        &[Type::Uint32, STRING, STRING, STRING, STRING],
        STRING,
        |context, args| {
            context.count(SCRYPT_STEPS)?;
            Ok(derived(args).into())
        },
    ),
    Function::new("encryptAES", &[STRING, STRING], STRING, |context, args| {
        Ok(encrypted(context, bytes(args, 0), bytes(args, 1)).into())
    }),
    Function::new("htpasswd", &[STRING, STRING], STRING, |context, args| {
        let user = string(args, 0);
        if user.contains(':') {
            return Ok(format!("invalid username: {user}").into());
        }
        Ok(format!("{user}:{}", bcrypted(context, bytes(args, 1))?).into())
    }),
];

/// The cost of a hash: 2 to this power of rounds.
const BCRYPT_COST: u32 = 10;

/// The longest password that bcrypt looks at.
const BCRYPT_MAX: usize = 72;

/// As how many steps a hash of a password counts: it takes about a tenth of a second.
const BCRYPT_STEPS: usize = 1_000_000;

/// As how many steps a derived password counts.
const SCRYPT_STEPS: usize = 2_000_000;

/// Hashes a password, or says in its place why not.
fn bcrypted(context: &mut dyn Context, password: &[u8]) -> Result<String, CallError> {
    let failed = |why: &str| format!("failed to encrypt string with bcrypt: {why}");
    if password.len() > BCRYPT_MAX {
        return Ok(failed("bcrypt: password length exceeds 72 bytes"));
    }
    context.count(BCRYPT_STEPS)?;
    let mut salt = [0; 16];
    context.environment().random(&mut salt);
    Ok(match bcrypt::hash_with_salt(password, BCRYPT_COST, salt) {
        Ok(hash) => hash.format_for_version(bcrypt::Version::TwoA),
        Err(_) => failed("bcrypt: the password holds a byte that cannot be hashed"),
    })
}

/// The key is the password, cut or filled with zeros.
fn key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    for (byte, from) in key.iter_mut().zip(password) {
        *byte = *from;
    }
    key
}

fn encrypted(context: &mut dyn Context, password: &[u8], text: &[u8]) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut iv = [0; 16];
    context.environment().random(&mut iv);
    let cipher = cbc::Encryptor::<Aes256>::new(&key(password).into(), &iv.into());
    let encrypted = cipher.encrypt_padded_vec::<Pkcs7>(text);
    STANDARD.encode([&iv[..], &encrypted].concat())
}

fn decrypt(_: &mut dyn Context, args: &[Value]) -> Answer {
    if bytes(args, 1).is_empty() {
        return Ok("".into());
    }
    let data = base64_decoded(bytes(args, 1))?;
    let Some((iv, encrypted)) = data.split_first_chunk::<16>() else {
        let len = data.len();
        return Err(CallError::new(format!(
            "runtime error: slice bounds out of range [:16] with capacity {len}"
        )));
    };
    let cipher = cbc::Decryptor::<Aes256>::new(&key(bytes(args, 0)).into(), &(*iv).into());
    let Ok(mut text) = cipher.decrypt_padded_vec::<NoPadding>(encrypted) else {
        return Err(CallError::new("crypto/cipher: input not full blocks"));
    };
    let Some(padding) = text.last().map(|byte| usize::from(*byte)) else {
        return Err(CallError::new("runtime error: index out of range [-1]"));
    };
    let Some(len) = text.len().checked_sub(padding) else {
        let end = i64::try_from(text.len()).unwrap_or_default() - i64::try_from(padding).unwrap_or_default();
        return Err(CallError::new(format!("runtime error: slice bounds out of range [:{end}]")));
    };
    text.truncate(len);
    Ok(Value::text(text))
}

/// What begins every text that is hashed for a derived password.
const SEED: &[u8] = b"com.lyndir.masterpassword";

/// Returns the shapes of passwords of a kind: each letter stands for a set of characters.
fn shapes(kind: &str) -> Option<Vec<&'static str>> {
    let shapes = match kind {
        "maximum" => "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno",
        "long" => {
            "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv CvccCvcvCvcvno \
             CvcvnoCvccCvcv CvcvCvccnoCvcv CvcvCvccCvcvno CvcvnoCvcvCvcc CvcvCvcvnoCvcc CvcvCvcvCvccno \
             CvccnoCvccCvcv CvccCvccnoCvcv CvccCvccCvcvno CvcvnoCvccCvcc CvcvCvccnoCvcc CvcvCvccCvccno \
             CvccnoCvcvCvcc CvccCvcvnoCvcc CvccCvcvCvccno"
        }
        "medium" => "CvcnoCvc CvcCvcno",
        "short" => "Cvcn",
        "basic" => "aaanaaan aannaaan aaannaaa",
        "pin" => "nnnn",
        _ => return None,
    };
    Some(shapes.split(' ').collect())
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// Derives a password from counter, kind, password, user and site.
fn derived(args: &[Value]) -> String {
    let kind = string(args, 1);
    let Some(shapes) = shapes(&kind) else {
        return format!("cannot find password template {kind}");
    };
    let counter = match args.first() {
        Some(Value::Uint(_, counter)) => u32::try_from(*counter).unwrap_or_default(),
        _ => u32::try_from(int(args, 0)).unwrap_or_default(),
    };
    let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    let (password, user, site) = (bytes(args, 2), bytes(args, 3), bytes(args, 4));
    let salt = [SEED, &length(user), user].concat();
    let mut key = [0; 64];
    let parameters = scrypt::Params::new(15, 8, 2);
    let done = parameters.is_ok_and(|p| scrypt::scrypt(password, &salt, &p, &mut key).is_ok());
    let Some(mut mac) = Hmac::<Sha256>::new_from_slice(&key).ok().filter(|_| done) else {
        return "failed to derive password: scrypt: parameters are too large".to_owned();
    };
    for part in [SEED, &length(site), site, &counter.to_be_bytes()] {
        mac.update(part);
    }
    let seed = mac.finalize().into_bytes();
    let mut seed = seed.iter().map(|byte| usize::from(*byte));
    let shape = shapes.get(seed.next().unwrap_or_default() % shapes.len()).copied().unwrap_or_default();
    shape
        .bytes()
        .map(characters)
        .zip(seed)
        .filter_map(|(characters, byte)| characters.get(byte % characters.len()))
        .map(|byte| char::from(*byte))
        .collect()
}
