//! The catalogue that the program carries in itself.
//!
//! A test compares this list with the directory, so that no file is forgotten.

use crate::load::SourceFile;

macro_rules! embedded {
    ($($file:literal,)*) => {
        /// Name and text of every embedded file.
        const FILES: &[(&str, &str)] =
            &[$((concat!("catalog/", $file), include_str!(concat!("../../../catalog/", $file))),)*];
    };
}

embedded! {
    "arrays/3par7450.toml",
    "arrays/cx4-960.toml",
    "arrays/msa2040.toml",
    "arrays/ps6100xv.toml",
    "disks/fc-15k-300gb.toml",
    "disks/hdd-7k2.toml",
    "disks/nl-7k2.toml",
    "disks/sas-10k-900gb-sff.toml",
    "disks/sas-15k-146gb-sff.toml",
    "flash/efd.toml",
    "flash/nvme.toml",
    "flash/ssd-sas-400gb.toml",
    "flash/ssd-sata.toml",
    "links/fibre-channel.toml",
    "links/iscsi.toml",
    "links/sas.toml",
    "nvram/write-caches.toml",
}

/// The embedded files.
pub(crate) fn files() -> Vec<SourceFile> {
    FILES.iter().map(|(name, text)| SourceFile { name: (*name).into(), text: (*text).into() }).collect()
}
