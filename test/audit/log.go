// SPDX-License-Identifier: Apache-2.0

// Reading and following a log, and who made a request.

package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
func (l *Log) Next() (writes []Write, err error) {
	for {
		content, err := readFrom(l.Path, l.offset)
		renamed, errRenamed := renamedLogs(l.Path)
		isLast := l.read == len(renamed)
		if !isLast { // what was read is of a newer file
			content, err = readFrom(renamed[l.read], l.offset)
		}
		if err := errors.Join(err, errRenamed); err != nil {
			return writes, err
		}
		lines, good, err := readLines(bytes.NewReader(content), func(w Write) { writes = append(writes, w) })
		if err == nil && good < lines {
			err = fmt.Errorf("%s: %d of %d new lines are not audit events", l.Path, lines-good, lines)
		}
		l.offset += int64(len(content))
		if isLast || err != nil {
			return writes, err
		}
		l.read, l.offset = l.read+1, 0
	}
}

// renamedLogs lists the renamed files of a log, the oldest first: for x.log, those like
// x-2026-01-02T03-04-05.678.log, sorted by name.
func renamedLogs(path string) ([]string, error) {
	folder, name := filepath.Split(path)
	extension := filepath.Ext(name)
	renamed, err := fs.Glob(os.DirFS(cmp.Or(folder, ".")), strings.TrimSuffix(name, extension)+"-*"+extension)
	for i := range renamed {
		renamed[i] = filepath.Join(folder, renamed[i])
	}
	return renamed, err
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

// longestLine is the greatest size of a line in bytes. etcd accepts objects of 1.5 MiB, and
// a line contains two.
const longestLine = 32 << 20

// ReadFile calls yield with each write of a log, and holds one line in memory at a time. The
// path "-" means stdin. The log may begin and end in the middle of a line, and may contain lines
// that are not events. What ReadFile skips, it says in messages.
func ReadFile(path string, stdin io.Reader, yield func(Write), messages io.Writer) error {
	name, source := "standard input", stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		name, source = path, file
	}
	lines, good, err := readLines(source, yield)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: after %d lines: %w", name, lines, err)
	case lines == 0:
		return fmt.Errorf("%s is empty", name)
	case good == 0:
		return fmt.Errorf("%s is not an audit log: none of its lines is an event of audit.k8s.io as JSON", name)
	case good < lines:
		fmt.Fprintf(messages, "%s: skipped %d of %d lines, which are not audit events, or incomplete\n", name, lines-good, lines)
	}
	return nil
}

// readLines calls yield with each write. It counts the lines that are not empty, and those
// of them that are events.
func readLines(r io.Reader, yield func(Write)) (lines, good int, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, longestLine)
	for scanner.Scan() {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		lines++
		write, err := parse(line)
		if err == nil {
			good++
		}
		if write != nil {
			yield(*write)
		}
	}
	return lines, good, scanner.Err()
}

// The names of kubelets, and of kwok, which simulates them in the development cluster.
const (
	Kubelet     = "kubelet"
	KwokKubelet = "kwok (as kubelet)"
)

// Actor is a person, a program or a part of the cluster that makes requests.
type Actor struct {
	Name string
	// System is true for parts of the cluster and service accounts; the others are people
	// and their programs.
	System bool
	// ByHand is true for kubectl, and for clients whose user agent has no name.
	ByHand bool
}

const (
	systemUser     = "system:"
	serviceAccount = "system:serviceaccount:"
)

// ActorOf returns who made a request. One user may be several actors: a controller that
// runs with an administrator's kubeconfig gets the name of its program.
func ActorOf(w Write) Actor {
	byHand := strings.HasPrefix(program(w.Agent), "kubectl")
	user := w.User
	if user == "system:kube-controller-manager" {
		// Controllers without credentials of their own name themselves in the user agent.
		if i := strings.Index(w.Agent, serviceAccount); i >= 0 {
			user = w.Agent[i:]
		}
	}
	short := strings.TrimPrefix(user, systemUser)
	switch {
	case user == "":
		return Actor{Name: "unknown"}
	case user == "kwok":
		return Actor{Name: KwokKubelet, System: true}
	case strings.HasPrefix(user, "system:node:"):
		return Actor{Name: Kubelet, System: true}
	case strings.HasPrefix(user, serviceAccount):
		name := strings.TrimPrefix(user[strings.LastIndex(user, ":")+1:], "generic-")
		return Actor{name, !byHand, byHand}
	case short != user && !byHand && short != "admin" && short != "anonymous":
		return Actor{Name: short, System: true}
	case byHand || program(w.Agent) == "":
		return Actor{Name: short, ByHand: true}
	}
	return Actor{Name: program(w.Agent)}
}
