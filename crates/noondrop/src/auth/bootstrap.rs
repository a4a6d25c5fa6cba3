//! The first start: one admin with a secret in the data directory, and never on an address that others can reach.
//!
//! As soon as the configuration names principals, the file no longer counts.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::identity::Identity;
use super::role::Role;
use super::secret::{Secret, SecretHash};
use crate::config::{ConfigError, DEFAULT_SHOP, Problem, Settings};
use crate::entropy::EntropyError;

const FILE_NAME: &str = "admin.secret";
const ADMIN_NAME: &str = "admin";

/// The admin of a program that has no principals configured.
#[derive(Clone, Debug)]
pub struct BootstrapAdmin {
    path: PathBuf,
    hash: SecretHash,
    created: bool,
}

impl BootstrapAdmin {
    /// The file with the secret.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this start made the secret.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// The secret's hash.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        self.hash
    }

    /// Who calls with the secret.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity {
            shop: Some(DEFAULT_SHOP.into()),
            name: ADMIN_NAME.into(),
            role: Role::Admin,
            buyer: None,
            issuer: None,
        }
    }
}

/// Why there is no admin secret.
#[derive(Debug)]
pub enum BootstrapError {
    /// The file or its directory could not be made or read.
    File {
        /// What was tried.
        tried: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file holds no secret of an admin. It is not overwritten: somebody may still need what is in it.
    NotASecret(PathBuf),
    /// Others than its owner may read it.
    ReadableByOthers(PathBuf),
    /// No random bits.
    Entropy(EntropyError),
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { tried, path, .. } => write!(f, "could not {tried} {}", path.display()),
            Self::NotASecret(path) => write!(
                f,
                "{} holds no admin secret; remove it, and the next start makes a new one",
                path.display()
            ),
            Self::ReadableByOthers(path) => {
                write!(f, "{} can be read by others; set its mode to 600", path.display())
            }
            Self::Entropy(_) => f.write_str("could not make the admin secret"),
        }
    }
}

impl std::error::Error for BootstrapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Entropy(source) => Some(source),
            Self::NotASecret(_) | Self::ReadableByOthers(_) => None,
        }
    }
}

/// The admin of a data directory: makes directory and secret where they are not, and never overwrites a secret.
pub fn bootstrap(data: &Path) -> Result<BootstrapAdmin, BootstrapError> {
    let path = data.join(FILE_NAME);
    make_private_directory(data).map_err(failed("make", data))?;
    match new_private_file(&path) {
        Ok(file) => create(path, file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(failed("make", &path)(error)),
    }
}

fn create(path: PathBuf, file: File) -> Result<BootstrapAdmin, BootstrapError> {
    let made = Secret::generate(Role::Admin).map_err(BootstrapError::Entropy).and_then(|secret| {
        write_durably(file, &secret, &path).map_err(failed("write", &path))?;
        Ok(secret.hash())
    });
    match made {
        Ok(hash) => Ok(BootstrapAdmin { path, hash, created: true }),
        Err(error) => {
            // Half a secret would stop the next start; the file is ours, made a moment ago.
            let _ = fs::remove_file(&path);
            Err(error)
        }
    }
}

fn write_durably(mut file: File, secret: &Secret, path: &Path) -> io::Result<()> {
    file.write_all(format!("{}\n", secret.reveal()).as_bytes())?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn read(path: PathBuf) -> Result<BootstrapAdmin, BootstrapError> {
    let private = is_private(&path).map_err(failed("look at", &path))?;
    if !private {
        return Err(BootstrapError::ReadableByOthers(path));
    }
    let text = fs::read_to_string(&path).map_err(failed("read", &path))?;
    match Secret::parse(text.trim_end()) {
        Some(secret) if secret.role() == Role::Admin => {
            Ok(BootstrapAdmin { path, hash: secret.hash(), created: false })
        }
        _ => Err(BootstrapError::NotASecret(path)),
    }
}

fn failed<'a>(
    tried: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> BootstrapError + use<'a> {
    move |source| BootstrapError::File { tried, path: path.to_path_buf(), source }
}

#[cfg(unix)]
fn new_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// What lies in it holds the texts of buyers; one that is there already keeps the mode that its owner gave it.
#[cfg(unix)]
fn make_private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn is_private(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    /// What group and world may do.
    const OTHERS: u32 = 0o077;
    Ok(fs::metadata(path)?.permissions().mode() & OTHERS == 0)
}

#[cfg(not(unix))]
fn is_private(path: &Path) -> io::Result<bool> {
    fs::metadata(path).map(|_| true)
}

/// Refuses an address that others can reach while no principal is configured: the secret of a first start travels in the
/// clear, and its only guard is that nobody else can call.
pub fn refuse_non_loopback_without_principals(settings: &Settings) -> Result<(), ConfigError> {
    let listen = settings.server.listen;
    if !settings.principals.is_empty() || is_loopback(&listen) {
        return Ok(());
    }
    let message = format!(
        "is {listen}, which others can reach, and no [[principals]] are configured; \
         make one with `noondrop principal add`, or listen on 127.0.0.1"
    );
    Err(ConfigError::Invalid(vec![Problem::new("server.listen", message)]))
}

fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};
    use crate::environment::Variable;

    #[test]
    fn the_first_start_makes_a_secret_and_the_second_finds_it() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let first = bootstrap(&data).unwrap();
        assert!(first.is_new());
        let text = fs::read_to_string(first.path()).unwrap();
        let second = bootstrap(&data).unwrap();
        assert!(!second.is_new());
        assert_eq!(first.hash().to_string(), second.hash().to_string());
        assert_eq!(fs::read_to_string(second.path()).unwrap(), text);
        let secret = Secret::parse(text.trim_end()).unwrap();
        assert_eq!(secret.hash().to_string(), second.hash().to_string());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_secret() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let admin = bootstrap(&home.path().join("data")).unwrap();
        let directory = fs::metadata(home.path().join("data")).unwrap().permissions().mode();
        assert_eq!(directory & 0o777, 0o700);
        let mode = fs::metadata(admin.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(admin.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let refused = bootstrap(&home.path().join("data"));
        assert!(matches!(refused, Err(BootstrapError::ReadableByOthers(_))), "{refused:?}");
    }

    #[test]
    fn what_is_no_secret_is_not_overwritten() {
        let home = tempfile::tempdir().unwrap();
        let seller = Secret::generate(Role::Seller).unwrap();
        for text in ["", "hunter2\n", seller.reveal()] {
            let path = home.path().join(FILE_NAME);
            let _ = fs::remove_file(&path);
            new_private_file(&path).unwrap().write_all(text.as_bytes()).unwrap();
            let refused = bootstrap(home.path());
            assert!(matches!(refused, Err(BootstrapError::NotASecret(_))), "{refused:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    fn listening_on(address: &str) -> Settings {
        let variables = vec![Variable::new("NOONDROP_SERVER__LISTEN", address)];
        load::load(&Sources { variables, ..Sources::default() }).unwrap().settings
    }

    #[test]
    fn only_loopback_goes_without_principals() {
        for address in ["127.0.0.1:80", "127.8.8.8:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            refuse_non_loopback_without_principals(&listening_on(address)).unwrap();
        }
        for address in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            let refused = refuse_non_loopback_without_principals(&listening_on(address));
            assert!(refused.unwrap_err().to_string().contains("server.listen"), "{address}");
        }
    }
}
