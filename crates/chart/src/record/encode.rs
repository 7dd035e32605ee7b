//! JSON, then gzip, then base64.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status as FlateStatus};

use super::Record;

/// The most bytes that the data of a Secret may have.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// How much a record may unpack to; far above what fits a Secret at usual rates.
const MAX_UNPACKED_BYTES: u64 = 256 << 20;

/// Why a record can't be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeRecordError {
    /// It has no JSON form.
    #[error("release record can not be written as JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// It is not text.
    #[error("release record is not UTF-8")]
    Text,
    /// It can't be packed.
    #[error("release record can not be packed: {0}")]
    Gzip(#[source] io::Error),
    /// It does not fit a Secret.
    #[error(
        "release record of {name} needs {bytes} bytes, a Secret holds {MAX_RECORD_BYTES}: \
         exclude files that templates do not read in .helmignore"
    )]
    Large {
        /// The name of the release.
        name: String,
        /// How many bytes it needs.
        bytes: usize,
    },
    /// It does not fit as many Secrets as a record may have.
    #[error(
        "release record of {name} needs {bytes} bytes, at most {most} are kept: \
         exclude files that templates do not read in .helmignore"
    )]
    TooLarge {
        /// The name of the release.
        name: String,
        /// How many bytes it needs.
        bytes: usize,
        /// How many it may need.
        most: usize,
    },
}

/// Why a record can't be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeRecordError {
    /// It is not base64.
    #[error("release record is not base64: {0}")]
    Base64(#[source] base64::DecodeError),
    /// It can't be unpacked, or is cut off.
    #[error("release record can not be unpacked: {0}")]
    Gzip(#[source] io::Error),
    /// It unpacks to too much.
    #[error("release record unpacks to more than {MAX_UNPACKED_BYTES} bytes")]
    Large,
    /// Its parts are those of another one.
    #[error("they are of another revision")]
    OtherRecord,
    /// It is not the JSON of a release.
    #[error("release record is not a Helm release: {0}")]
    Json(#[source] serde_json::Error),
}

/// The head of what is packed: deflated, without a name or a time, as small as possible.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];

/// Encodes records, one after the other. It keeps the memory of its compressor: to take that anew costs more than to
/// pack a usual record.
#[derive(Debug)]
pub struct Encoder(Compress);

impl Default for Encoder {
    fn default() -> Self {
        Self(Compress::new(Compression::best(), false))
    }
}

impl Encoder {
    /// Returns the data of the Secret that holds `record`.
    pub fn encode(&mut self, record: &Record) -> Result<String, EncodeRecordError> {
        let json = golang::json::to_vec(record).map_err(EncodeRecordError::Json)?;
        let packed = self.pack(&json).map_err(EncodeRecordError::Gzip)?;
        let data = STANDARD.encode(packed);
        if data.len() > MAX_RECORD_BYTES {
            return Err(EncodeRecordError::Large { name: record.name.clone(), bytes: data.len() });
        }
        Ok(data)
    }

    /// Returns bytes packed.
    pub(super) fn pack(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.0.reset();
        let mut packed = Vec::with_capacity(bytes.len() / 3 + 64);
        packed.extend(GZIP_HEAD);
        let mut rest = bytes;
        loop {
            let before = self.0.total_in();
            let status = self.0.compress_vec(rest, &mut packed, FlushCompress::Finish)?;
            let taken = usize::try_from(self.0.total_in() - before).map_err(io::Error::other)?;
            rest = rest.get(taken..).unwrap_or_default();
            if status == FlateStatus::StreamEnd {
                break;
            }
            packed.reserve(packed.len().max(64));
        }
        let mut sum = Crc::new();
        sum.update(bytes);
        packed.extend(sum.sum().to_le_bytes());
        packed.extend(sum.amount().to_le_bytes());
        Ok(packed)
    }
}

/// Returns the data of the Secret that holds `record`.
pub fn encode(record: &Record) -> Result<String, EncodeRecordError> {
    Encoder::default().encode(record)
}

/// Reads the data of a Secret. Records of the first versions of Helm were not packed.
pub fn decode(data: &[u8]) -> Result<Record, DecodeRecordError> {
    let packed = STANDARD.decode(data.trim_ascii()).map_err(DecodeRecordError::Base64)?;
    if !packed.starts_with(&[0x1f, 0x8b, 8]) {
        return serde_json::from_slice(&packed).map_err(DecodeRecordError::Json);
    }
    serde_json::from_slice(&unpack(&packed)?).map_err(DecodeRecordError::Json)
}

/// Returns what was packed.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<u8>, DecodeRecordError> {
    let mut json = Vec::new();
    let mut unpacked = GzDecoder::new(packed).take(MAX_UNPACKED_BYTES + 1);
    unpacked.read_to_end(&mut json).map_err(DecodeRecordError::Gzip)?;
    if json.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(DecodeRecordError::Large);
    }
    Ok(json)
}
