// SPDX-License-Identifier: Apache-2.0

// Reading and following a log, and who acts in it.

package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Log follows a log that grows. The server writes an event before it completes the
// response, so the log contains every call that has returned. When the file becomes
// large, the server renames it and begins a new one.
type Log struct {
	// Path is the path of the file that the server writes to.
	Path string
	// read is the number of renamed files that have been read to the end, and offset the
	// number of bytes that have been read of the next file.
	read   int
	offset int64
}

// OpenAtEnd opens a log at its present end.
func OpenAtEnd(path string) (*Log, error) {
	renamed, err := renamedLogs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &Log{Path: path, read: len(renamed), offset: info.Size()}, nil
}

// Next returns what was written since the last call.
func (l *Log) Next() ([]Write, error) {
	for {
		renamed, err := renamedLogs(l.Path)
		if err != nil {
			return nil, err
		}
		var content []byte
		offset := l.offset
		for _, path := range append(renamed[l.read:], l.Path) {
			more, err := readFrom(path, offset)
			if err != nil {
				return nil, err
			}
			offset += int64(len(more))
			content = append(content, more...)
			if path != l.Path {
				offset = 0
			}
		}
		if now, err := renamedLogs(l.Path); err != nil {
			return nil, err
		} else if len(now) != len(renamed) {
			continue // The file was renamed meanwhile: what was read has a gap.
		}
		l.read, l.offset = len(renamed), offset
		return parseLines(content)
	}
}

// renamedLogs lists the renamed files of a log, the oldest first: for x.log, those like
// x-2026-01-02T03-04-05.678.log.
func renamedLogs(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path)) // sorted by name, and the names contain the time
	if err != nil {
		return nil, err
	}
	extension := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), extension) + "-"
	var renamed []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) && filepath.Ext(entry.Name()) == extension {
			renamed = append(renamed, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return renamed, nil
}

// readFrom returns the complete lines of a file from an offset on. The last line may be
// incomplete.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	return content[:bytes.LastIndexByte(content, '\n')+1], err
}

func parseLines(content []byte) ([]Write, error) {
	var all []Write
	var errs []error
	for line := range bytes.Lines(content) {
		writes, err := Parse(line)
		all, errs = append(all, writes...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// longestLine is the size in bytes above which a line is skipped. etcd accepts objects of
// 1.5 MiB, and a line contains two.
const longestLine = 32 << 20

// Count counts the lines of a log.
type Count struct {
	// Lines is the number of lines that are not empty.
	Lines int
	// Good is the number of lines that are audit events; Bad is the number of those that
	// are not, or are too long.
	Good, Bad int
	// Cut reports whether the last line is incomplete.
	Cut bool
}

// Read calls yield with each write of a log, and holds one line in memory at a time. The
// log may be compressed by gzip after a rotation, may begin and end in the middle of a
// line, and may contain lines that are not events. Read counts such lines; it returns an
// error only if the reader fails.
func Read(r io.Reader, yield func(Write)) (Count, error) {
	reader, err := unpacked(r)
	if err != nil {
		return Count{}, err
	}
	var count Count
	for {
		line, whole, err := nextLine(reader)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return count, fmt.Errorf("after %d lines: %w", count.Lines, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 || !whole {
			count.add(text, whole, ended, yield)
		}
		if ended {
			count.Cut = count.Cut || errors.Is(err, io.ErrUnexpectedEOF)
			return count, nil
		}
	}
}

// add counts a line, and calls yield with its writes.
func (c *Count) add(line []byte, whole, last bool, yield func(Write)) {
	c.Lines++
	writes, err := Parse(line)
	switch {
	case whole && err == nil:
		c.Good++
		for _, write := range writes {
			yield(write)
		}
	case last:
		c.Cut = true
	default:
		c.Bad++
	}
}

// unpacked returns a reader that decompresses gzip, and returns anything else unchanged.
func unpacked(r io.Reader) (*bufio.Reader, error) {
	reader := bufio.NewReaderSize(r, 64<<10)
	if magic, err := reader.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return reader, nil //nolint:nilerr // a file of one byte is not gzip, and the next read returns any other error
	}
	packed, err := gzip.NewReader(reader)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(packed, 64<<10), nil
}

// nextLine reads up to the end of the line. whole is false if the line is too long and
// was skipped.
func nextLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > longestLine {
			line, whole = nil, false
		}
		if whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

// The names of kubelets, and of kwok, which simulates them in the development cluster.
const (
	Kubelet     = "kubelet"
	KwokKubelet = "kwok (as kubelet)"
)

// Actor is a person, a program or a part of the cluster that makes requests.
type Actor struct {
	// Name is short, and two actors may have the same; Full is unique.
	Name, Full string
	// System is true for parts of the cluster and service accounts; the others are people
	// and their programs.
	System bool
	// ByHand is true for kubectl, and for clients whose user agent has no name.
	ByHand bool
}

const (
	systemUser     = "system:"
	serviceAccount = "system:serviceaccount:"
	nodeUser       = "system:node:"
)

// ActorOf returns who made a request. One user may be several actors: a controller that
// runs with an administrator's kubeconfig gets the name of its program.
func ActorOf(w Write) Actor {
	byHand := strings.HasPrefix(program(w.Agent), "kubectl")
	tool := ""
	if byHand {
		tool = " (kubectl)"
	}
	user := w.User
	if user == "system:kube-controller-manager" {
		// Controllers without credentials of their own name themselves in the user agent.
		if i := strings.Index(w.Agent, serviceAccount); i >= 0 {
			user = w.Agent[i:]
		}
	}
	switch {
	case user == "":
		return Actor{Name: "unknown", Full: "no user"}
	case user == "kwok":
		return Actor{Name: KwokKubelet, Full: user, System: true}
	case strings.HasPrefix(user, nodeUser):
		return Actor{Name: Kubelet, Full: strings.TrimSuffix(nodeUser, ":"), System: true}
	case strings.HasPrefix(user, serviceAccount):
		namespace, name, _ := strings.Cut(strings.TrimPrefix(user, serviceAccount), ":")
		name = strings.TrimPrefix(name, "generic-")
		return Actor{Name: name, Full: namespace + "/" + name + tool, System: !byHand, ByHand: byHand}
	case strings.HasPrefix(user, systemUser) && !byHand && user != "system:admin" && user != "system:anonymous":
		return Actor{Name: strings.TrimPrefix(user, systemUser), Full: user, System: true}
	case byHand || program(w.Agent) == "":
		if !strings.HasPrefix(user, systemUser) {
			tool = ""
		}
		return Actor{Name: strings.TrimPrefix(user, systemUser), Full: user + tool, ByHand: true}
	}
	return Actor{Name: program(w.Agent), Full: program(w.Agent) + " (" + user + ")"}
}
