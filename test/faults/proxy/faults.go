/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package proxy

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cut ends the connection before the API server hears of the request.
func Cut(x *Exchange) {
	x.tell("cut before the API server heard of it")
	x.Cut()
}

// LoseReply has the API server do what is asked, and ends the connection
// without its answer.
func LoseReply(x *Exchange) {
	x.tell("done, and its reply lost")
	x.Forward()
	x.Cut()
}

// Hang keeps the request, and gives it to nobody.
func Hang(x *Exchange) {
	x.tell("hangs")
	<-x.Gone()
	x.Cut()
}

// HangDone has the API server do what is asked, and never answers.
func HangDone(x *Exchange) {
	x.tell("done, and never answered")
	x.Forward()
	<-x.Gone()
	x.Cut()
}

// Hold keeps the request until release is closed, then forwards it.
func Hold(release <-chan struct{}) Fault {
	return func(x *Exchange) {
		x.tell("held")
		select {
		case <-release:
		case <-x.Gone():
			x.tell("given up by the client")
			x.proxy.note(func() { x.Call.GivenUp = true })
			x.Cut()
		}
		x.Forward()
		x.Reply()
	}
}

// Delay forwards the request after a time.
func Delay(howLong time.Duration) Fault {
	return func(x *Exchange) {
		timer := time.NewTimer(howLong)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.Gone():
			x.Cut()
		}
		x.Forward()
		x.Reply()
	}
}

// CutAndLater ends the connection, and has the API server do what is asked once
// begin is closed: a packet that took its time.
func CutAndLater(begin <-chan struct{}) Fault {
	return func(x *Exchange) {
		x.tell("cut, and done later")
		x.Later(begin)
		x.Cut()
	}
}

// Before calls do, which may end the client, in place of forwarding the request.
func Before(what string, do func()) Fault {
	return func(x *Exchange) {
		x.tell(what + " before it was done")
		do()
		x.Cut()
	}
}

// After has the API server do what is asked, then calls do, which may end the
// client, in place of answering.
func After(what string, do func()) Fault {
	return func(x *Exchange) {
		x.tell(what + " after it was done")
		x.Forward()
		do()
		x.Cut()
	}
}

// Conflict answers as if another had written first.
func Conflict(x *Exchange) {
	x.Answer(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version", 0)
}

// TooMany asks to come back after a second.
func TooMany(x *Exchange) {
	x.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", 1)
}

// ComeBack asks to come back after some seconds.
func ComeBack(seconds int) Fault {
	return func(x *Exchange) {
		x.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", seconds)
	}
}

// Throttle asks for the same in the words of API Priority and Fairness: a line
// of text, and a header.
func Throttle(seconds int) Fault {
	return func(x *Exchange) {
		x.AnswerText(http.StatusTooManyRequests, "Too many requests, please try again later.", seconds)
	}
}

// Internal answers 500.
func Internal(x *Exchange) {
	x.Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "an internal error", 0)
}

// Unavailable answers 503.
func Unavailable(x *Exchange) {
	x.Answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not available", 0)
}

// Forbidden answers 403.
func Forbidden(x *Exchange) {
	x.Answer(http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden", 0)
}

// Unauthorized answers 401.
func Unauthorized(x *Exchange) {
	x.Answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", 0)
}

// Expired answers 410, as a watch from a resourceVersion that is compacted away gets.
func Expired(x *Exchange) {
	x.Answer(http.StatusGone, metav1.StatusReasonExpired, "too old resource version", 0)
}
