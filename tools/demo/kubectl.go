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

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// kubectl runs kubectl, having shown the command as one would type it. What kubectl prints is shown only if it
// fails.
func kubectl(ctx context.Context, out io.Writer, args ...string) error {
	typed := "kubectl " + strings.Join(args, " ")
	fmt.Fprintln(out, "$ "+typed)
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, devclusterPath, append([]string{"kubectl"}, args...)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", typed, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", typed, err, strings.TrimSpace(output.String()))
	}
	return nil
}
