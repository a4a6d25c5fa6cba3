//! Reading an HTTP/1.1 response out of a buffer: the few headers that matter here, and the body.

/// Headers of one response; more is no server of ours.
const HEADERS_MAX: usize = 48;
/// The largest response that is read.
pub const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// One answer. Borrows the connection's buffer until the next request.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after_seconds: Option<u64>,
    /// `Idempotency-Replayed: true`.
    pub replayed: bool,
    /// `Noondrop-Position`.
    pub position: Option<&'a str>,
    /// The body, whole.
    pub body: &'a [u8],
}

/// What stands in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not all of it yet.
    Partial,
    /// A whole response.
    Whole(Layout),
    /// No HTTP/1.1 response.
    Malformed,
}

/// Where the parts of a whole response lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    status: u16,
    retry_after_seconds: Option<u64>,
    replayed: bool,
    position: (usize, usize),
    body: (usize, usize),
    /// The server closes the connection after it.
    pub closes: bool,
}

impl Layout {
    /// The response, out of the buffer that was parsed.
    #[must_use]
    pub fn of(self, buffer: &[u8]) -> Response<'_> {
        let part = |(from, to): (usize, usize)| buffer.get(from..to).unwrap_or_default();
        let position = std::str::from_utf8(part(self.position)).ok();
        Response {
            status: self.status,
            retry_after_seconds: self.retry_after_seconds,
            replayed: self.replayed,
            position: position.filter(|text| !text.is_empty()),
            body: part(self.body),
        }
    }
}

/// What a head says.
struct Head {
    layout: Layout,
    end: usize,
    length: Option<usize>,
    chunked: bool,
}

/// Parses what was read so far. A body in chunks is put together in place.
pub fn parse(buffer: &mut Vec<u8>) -> Parsed {
    let head = match parse_head(buffer) {
        Ok(Some(head)) => head,
        Ok(None) => return Parsed::Partial,
        Err(()) => return Parsed::Malformed,
    };
    let mut layout = head.layout;
    if head.chunked {
        return match joined_chunks(&buffer[head.end..]) {
            Ok(Some(body)) => {
                layout.body = (head.end, head.end + body.len());
                buffer.truncate(head.end);
                buffer.extend_from_slice(&body);
                Parsed::Whole(layout)
            }
            Ok(None) => Parsed::Partial,
            Err(()) => Parsed::Malformed,
        };
    }
    let no_body = layout.status == 204 || layout.status == 304;
    let Some(length) = head.length.or(no_body.then_some(0)) else { return Parsed::Malformed };
    if length > RESPONSE_BYTES_MAX {
        return Parsed::Malformed;
    }
    layout.body = (head.end, head.end + length);
    if buffer.len() < layout.body.1 { Parsed::Partial } else { Parsed::Whole(layout) }
}

fn parse_head(buffer: &[u8]) -> Result<Option<Head>, ()> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let end = match response.parse(buffer) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(()),
    };
    let layout = Layout {
        status: response.code.ok_or(())?,
        retry_after_seconds: None,
        replayed: false,
        position: (0, 0),
        body: (end, end),
        closes: false,
    };
    let mut head = Head { layout, end, length: None, chunked: false };
    for header in response.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let text = std::str::from_utf8(header.value).unwrap_or_default().trim();
        if is("content-length") {
            head.length = Some(text.parse().map_err(|_| ())?);
        } else if is("transfer-encoding") {
            head.chunked = text.eq_ignore_ascii_case("chunked");
        } else if is("connection") {
            head.layout.closes = text.eq_ignore_ascii_case("close");
        } else if is("retry-after") {
            head.layout.retry_after_seconds = text.parse().ok();
        } else if is("idempotency-replayed") {
            head.layout.replayed = text == "true";
        } else if is("noondrop-position") {
            let from = header.value.as_ptr() as usize - buffer.as_ptr() as usize;
            head.layout.position = (from, from + header.value.len());
        }
    }
    Ok(Some(head))
}

/// The body of a chunked message (RFC 9112 section 7.1), once all of it is there. Trailers are passed over.
fn joined_chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>, ()> {
    let mut body = Vec::new();
    loop {
        let (start, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(()),
        };
        let size = usize::try_from(size).map_err(|_| ())?;
        if body.len().saturating_add(size) > RESPONSE_BYTES_MAX {
            return Err(());
        }
        rest = &rest[start..];
        if size == 0 {
            let ends = rest.starts_with(b"\r\n") || rest.windows(4).any(|w| w == b"\r\n\r\n");
            return Ok(ends.then_some(body));
        }
        if rest.len() < size + 2 {
            return Ok(None);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> (u16, Vec<u8>, Option<String>, bool) {
        let mut buffer = text.as_bytes().to_vec();
        let Parsed::Whole(layout) = parse(&mut buffer) else { panic!("{text}") };
        let response = layout.of(&buffer);
        let position = response.position.map(str::to_owned);
        (response.status, response.body.to_vec(), position, response.replayed)
    }

    #[test]
    fn a_whole_answer_is_read_and_a_part_of_it_is_not() {
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nIdempotency-Replayed: true\r\n\
                    Noondrop-Position: 7.00ff00ff\r\n\r\n{}";
        assert_eq!(whole(text), (201, b"{}".to_vec(), Some("7.00ff00ff".into()), true));
        for cut in 0..text.len() {
            assert_eq!(parse(&mut text.as_bytes()[..cut].to_vec()), Parsed::Partial, "{cut}");
        }
    }

    #[test]
    fn a_body_in_chunks_is_put_together() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(whole(text).1, b"abcde");
        let cut = &text[..text.len() - 3];
        assert_eq!(parse(&mut cut.as_bytes().to_vec()), Parsed::Partial);
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for wrong in ["SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
            assert_eq!(parse(&mut wrong.as_bytes().to_vec()), Parsed::Malformed, "{wrong}");
        }
    }
}
